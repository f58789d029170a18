package harness;

import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceEvent;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * One reader that emits a record for each letter of a script. In between, its enumerator says {@code +} that it processes a
 * backlog and {@code -} that it does not any more, of which Flink makes attributes of records; {@code i} and {@code a} of the
 * script make the output idle and active. It begins when the board says so, and after the first letter waits until that is held
 * by the operator behind it.
 */
final class BacklogSource implements Source<String, LogSource.Split, Integer> {
    private static final long serialVersionUID = 1L;
    static final String BEGIN = "begin";
    static final String EMITTED = "emitted";
    static final String SNAPSHOT = "snapshot";
    private final String run;
    private final String script;

    BacklogSource(String run, String script) {
        this.run = run;
        this.script = script;
    }

    /** Asks the enumerator to say something, and tells the reader that it was said: events to a reader keep their order. */
    static final class Said implements SourceEvent {
        private static final long serialVersionUID = 1L;
        final boolean backlog;

        Said(boolean backlog) {
            this.backlog = backlog;
        }
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<LogSource.Split, Integer> createEnumerator(SplitEnumeratorContext<LogSource.Split> context) {
        return new Enumerator(context);
    }

    @Override
    public SplitEnumerator<LogSource.Split, Integer> restoreEnumerator(
            SplitEnumeratorContext<LogSource.Split> context, Integer state) {
        return new Enumerator(context);
    }

    @Override
    public SimpleVersionedSerializer<LogSource.Split> getSplitSerializer() {
        return new LogSource.SplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<Integer> getEnumeratorCheckpointSerializer() {
        return new SimpleVersionedSerializer<Integer>() {
            @Override
            public int getVersion() {
                return 0;
            }

            @Override
            public byte[] serialize(Integer state) {
                return new byte[0];
            }

            @Override
            public Integer deserialize(int version, byte[] data) {
                return 0;
            }
        };
    }

    @Override
    public SourceReader<String, LogSource.Split> createReader(SourceReaderContext context) {
        return new Reader(context, Board.of(run), script);
    }

    private static final class Enumerator implements SplitEnumerator<LogSource.Split, Integer> {
        private final SplitEnumeratorContext<LogSource.Split> context;

        Enumerator(SplitEnumeratorContext<LogSource.Split> context) {
            this.context = context;
        }

        @Override
        public void handleSourceEvent(int subtask, SourceEvent event) {
            context.setIsProcessingBacklog(((Said) event).backlog);
            context.sendEventToSourceReader(subtask, event);
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void addSplitsBack(List<LogSource.Split> splits, int subtask) {}

        @Override
        public void addReader(int subtask) {}

        @Override
        public Integer snapshotState(long checkpoint) {
            return 0;
        }

        @Override
        public void close() {}
    }

    private static final class Reader implements SourceReader<String, LogSource.Split> {
        private final SourceReaderContext context;
        private final Board board;
        private final String script;
        private int next;
        private CompletableFuture<Void> said = CompletableFuture.completedFuture(null);

        Reader(SourceReaderContext context, Board board, String script) {
            this.context = context;
            this.board = board;
            this.script = script;
        }

        @Override
        public InputStatus pollNext(ReaderOutput<String> output) throws Exception {
            if (next == script.length()) {
                said = new CompletableFuture<>();
                board.records.add(EMITTED);
                return InputStatus.NOTHING_AVAILABLE;
            }
            String awaited = next == 0 ? BEGIN : next == 1 ? BacklogJob.HELD : null;
            if (awaited != null && !board.records.contains(awaited)) {
                Thread.sleep(1);
                return InputStatus.MORE_AVAILABLE;
            }
            char one = script.charAt(next++);
            switch (one) {
                case '+':
                case '-':
                    said = new CompletableFuture<>();
                    context.sendSourceEventToCoordinator(new Said(one == '+'));
                    return InputStatus.NOTHING_AVAILABLE;
                case 'i':
                    output.markIdle();
                    break;
                case 'a':
                    output.markActive();
                    break;
                default:
                    output.collect(String.valueOf(one));
            }
            return InputStatus.MORE_AVAILABLE;
        }

        @Override
        public void handleSourceEvents(SourceEvent event) {
            said.complete(null);
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return said;
        }

        @Override
        public List<LogSource.Split> snapshotState(long checkpoint) {
            board.records.add(SNAPSHOT);
            return Collections.emptyList();
        }

        @Override
        public void start() {}

        @Override
        public void addSplits(List<LogSource.Split> splits) {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
