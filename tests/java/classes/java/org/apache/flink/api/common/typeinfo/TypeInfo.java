package org.apache.flink.api.common.typeinfo;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Has the name of Flink's annotation. */
@Retention(RetentionPolicy.RUNTIME)
public @interface TypeInfo {
    Class<?> value();
}
