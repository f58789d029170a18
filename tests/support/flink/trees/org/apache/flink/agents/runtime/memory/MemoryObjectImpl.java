package org.apache.flink.agents.runtime.memory;

import java.io.Serializable;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

/** Stands for the class of Flink Agents 0.1 to 0.3, with the names and types of its fields: the jars of Flink Agents are not available. */
public final class MemoryObjectImpl {
    private MemoryObjectImpl() {}

    private enum ItemType {
        OBJECT,
        VALUE
    }

    /** A value, or the names below a path. */
    public static final class MemoryItem implements Serializable {
        private final ItemType type;
        private final Object value;
        private final Set<String> subKeys;

        public MemoryItem(Object value) {
            this.type = ItemType.VALUE;
            this.value = value;
            this.subKeys = Collections.emptySet();
        }

        public MemoryItem(String... subKeys) {
            this.type = ItemType.OBJECT;
            this.value = null;
            this.subKeys = new HashSet<>();
            Collections.addAll(this.subKeys, subKeys);
        }

        @Override
        public String toString() {
            return type + " " + value + " " + new java.util.TreeSet<>(subKeys);
        }
    }
}
