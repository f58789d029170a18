package jobs;

import org.apache.flink.streaming.api.datastream.DataStream;

final class UidOnlyA extends InValue {
    @Override
    int add(String key, int number) throws Exception {
        return super.add(key, number);
    }
}

final class UidOnlyB extends InValue {
    @Override
    int add(String key, int number) throws Exception {
        return super.add(key, 10 * number);
    }
}

final class GeneratedSame extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA()).union(keyed(lines).flatMap(new UidOnlyB()));
    }
}

final class GeneratedSwapped extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA()).name("a").union(keyed(lines).flatMap(new UidOnlyB()).name("b")); // old
        return keyed(lines).flatMap(new UidOnlyB()).name("b").union(keyed(lines).flatMap(new UidOnlyA()).name("a")); // new
    }
}

final class GeneratedSwappedUnnamed extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA()).union(keyed(lines).flatMap(new UidOnlyB())); // old
        return keyed(lines).flatMap(new UidOnlyB()).union(keyed(lines).flatMap(new UidOnlyA())); // new
    }
}

final class GeneratedSwappedInARow extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(keyed(lines).flatMap(new UidOnlyA()).map(text -> text.replace("=", ",") + ",0")).flatMap(new UidOnlyB()); // old
        return keyed(keyed(lines).flatMap(new UidOnlyB()).map(text -> text.replace("=", ",") + ",0")).flatMap(new UidOnlyA()); // new
    }
}

final class GeneratedInserted extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines
                .map(line -> line) // new
                ).flatMap(new UidOnlyA());
    }
}

final class GeneratedAppended extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .map(line -> line) // new
                ;
    }
}

final class GeneratedChain extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .disableChaining() // new
                ;
    }
}

final class GeneratedParallelism extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .setParallelism(2) // new
                ;
    }
}

final class GeneratedToUid extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .uid("sums") // new
                ;
    }
}

/** The hash of the uid {@code sums}. */
final class UidToHash extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .uid("sums") // old
                .setUidHash("SUMS_HASH") // new
                ;
    }
}

final class UidToOtherHash extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .uid("sums") // old
                .setUidHash("0123456789abcdef0123456789abcdef") // new
                ;
    }
}

final class UidRenamed extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA())
                .uid("sums") // old
                .uid("totals") // new
                ;
    }
}

/** Both operators keep a uid, and have that of the other one. */
final class UidsSwapped extends Job {
    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new UidOnlyA()).uid("one").union(keyed(lines).flatMap(new UidOnlyB()).uid("two")); // old
        return keyed(lines).flatMap(new UidOnlyA()).uid("two").union(keyed(lines).flatMap(new UidOnlyB()).uid("one")); // new
    }
}
