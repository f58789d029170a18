package com.esotericsoftware.kryo;

/** Has the name of Kryo's interface. */
public interface KryoSerializable {}
