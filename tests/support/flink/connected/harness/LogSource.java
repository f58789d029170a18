package harness;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * A made-up log whose state has the layout that Kafka's source writes: splits of version 0, an enumerator of version 3. A record is
 * {@code topic-partition@offset}; each partition has an end, which is known beforehand.
 */
final class LogSource implements Source<Object, LogSource.Split, List<LogSource.Known>> {
    private static final long serialVersionUID = 1L;
    /** Where a reader starts that has committed offsets. */
    private static final long COMMITTED = 5;
    private final Map<String, Long> ends;

    LogSource(Map<String, Long> ends) {
        this.ends = ends;
    }

    static final class Split implements SourceSplit, Serializable {
        private static final long serialVersionUID = 1L;
        final String topic;
        final int partition;
        final long stop;
        long next;

        Split(String topic, int partition, long next, long stop) {
            this.topic = topic;
            this.partition = partition;
            this.next = next;
            this.stop = stop;
        }

        @Override
        public String splitId() {
            return topic + "-" + partition;
        }
    }

    static final class Known {
        final Split split;
        final boolean assigned;

        Known(Split split, boolean assigned) {
            this.split = split;
            this.assigned = assigned;
        }
    }

    static final class SplitSerializer implements SimpleVersionedSerializer<Split> {
        @Override
        public int getVersion() {
            return 0;
        }

        @Override
        public byte[] serialize(Split split) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeUTF(split.topic);
            out.writeInt(split.partition);
            out.writeLong(split.next);
            out.writeLong(split.stop);
            return bytes.toByteArray();
        }

        @Override
        public Split deserialize(int version, byte[] data) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(data));
            Split split = new Split(in.readUTF(), in.readInt(), in.readLong(), in.readLong());
            if (version != 0 || in.read() != -1) {
                throw new IOException("not a split of version 0");
            }
            return split;
        }
    }

    static final class StateSerializer implements SimpleVersionedSerializer<List<Known>> {
        @Override
        public int getVersion() {
            return 3;
        }

        @Override
        public byte[] serialize(List<Known> state) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(state.size());
            out.writeInt(0);
            for (Known known : state) {
                byte[] split = new SplitSerializer().serialize(known.split);
                out.writeInt(split.length);
                out.write(split);
                out.writeInt(known.assigned ? 0 : 1);
            }
            out.writeBoolean(true);
            return bytes.toByteArray();
        }

        @Override
        public List<Known> deserialize(int version, byte[] data) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(data));
            int count = in.readInt();
            int splits = in.readInt();
            List<Known> state = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                byte[] split = new byte[in.readInt()];
                in.readFully(split);
                state.add(new Known(new SplitSerializer().deserialize(splits, split), in.readInt() == 0));
            }
            if (version != 3 || !in.readBoolean() || in.read() != -1) {
                throw new IOException("not enumerator state of version 3");
            }
            return state;
        }
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.BOUNDED;
    }

    @Override
    public SplitEnumerator<Split, List<Known>> createEnumerator(SplitEnumeratorContext<Split> context) {
        throw new IllegalStateException("only restored");
    }

    @Override
    public SplitEnumerator<Split, List<Known>> restoreEnumerator(SplitEnumeratorContext<Split> context, List<Known> state) {
        return new Enumerator(context, state);
    }

    @Override
    public SimpleVersionedSerializer<Split> getSplitSerializer() {
        return new SplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<List<Known>> getEnumeratorCheckpointSerializer() {
        return new StateSerializer();
    }

    @Override
    public SourceReader<Object, Split> createReader(SourceReaderContext context) {
        return new Reader(ends);
    }

    static final class Enumerator implements SplitEnumerator<Split, List<Known>> {
        private final SplitEnumeratorContext<Split> context;
        private final Map<String, Known> known = new LinkedHashMap<>();

        Enumerator(SplitEnumeratorContext<Split> context, List<Known> state) {
            this.context = context;
            for (Known k : state) {
                known.put(k.split.splitId(), k);
            }
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<Split> splits, int subtask) {
            throw new IllegalStateException("no reader fails here");
        }

        @Override
        public void addReader(int subtask) {
            for (Known k : new ArrayList<>(known.values())) {
                if (!k.assigned && subtask == 0) {
                    context.assignSplit(k.split, subtask);
                    known.put(k.split.splitId(), new Known(k.split, true));
                }
            }
            context.signalNoMoreSplits(subtask);
        }

        @Override
        public List<Known> snapshotState(long checkpoint) {
            return new ArrayList<>(known.values());
        }

        @Override
        public void close() {}
    }

    static final class Reader implements SourceReader<Object, Split> {
        private final Map<String, Long> ends;
        private final Queue<Split> splits = new ArrayDeque<>();
        private final CompletableFuture<Void> told = new CompletableFuture<>();

        Reader(Map<String, Long> ends) {
            this.ends = ends;
        }

        @Override
        public void start() {}

        @Override
        public InputStatus pollNext(ReaderOutput<Object> output) {
            Split split = splits.peek();
            if (split == null) {
                return told.isDone() ? InputStatus.END_OF_INPUT : InputStatus.NOTHING_AVAILABLE;
            }
            long end = ends.get(split.splitId());
            if (split.stop >= 0) {
                end = Math.min(end, split.stop);
            }
            if (split.next < 0) {
                split.next = split.next == -1 ? end : split.next == -2 ? 0 : COMMITTED;
            }
            if (split.next < end) {
                output.collect(split.splitId() + "@" + split.next++);
            } else {
                splits.remove();
            }
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public List<Split> snapshotState(long checkpoint) {
            return new ArrayList<>(splits);
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return splits.isEmpty() ? told : CompletableFuture.completedFuture(null);
        }

        @Override
        public void addSplits(List<Split> more) {
            splits.addAll(more);
        }

        @Override
        public void notifyNoMoreSplits() {
            told.complete(null);
        }

        @Override
        public void close() {}
    }
}
