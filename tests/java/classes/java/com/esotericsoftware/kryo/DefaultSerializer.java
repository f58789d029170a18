package com.esotericsoftware.kryo;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Has the name of Kryo's annotation, so that the tests need no Kryo. */
@Retention(RetentionPolicy.RUNTIME)
public @interface DefaultSerializer {
    Class<?> value();
}
