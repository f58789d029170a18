package harness;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * Writes numbers to a table with a sink that has a global committer. Checkpoints are only those that it asks for. The global committer commits
 * files one checkpoint after the committers, so a savepoint has files of two checkpoints.
 */
final class CommitJob {
    private CommitJob() {}

    /** A table, and the sink to it. */
    interface Table {
        /** Folder of the commits, below that of the table. */
        String commits();

        void write(DataStream<Long> numbers, String folder, String uid);

        /** Let the global committer of all jobs commit, or not. */
        void hold(boolean held);
    }

    /** Numbers, not too fast. */
    static final class Slow implements MapFunction<Long, Long> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long n) throws Exception {
            Thread.sleep(1);
            Board.of(run).records.add("");
            return n;
        }
    }

    static Map<String, Object> run(Cluster cluster, JsonNode request, Table table) throws Exception {
        Path folder = Paths.get(request.get("table").asText());
        Files.createDirectories(folder);
        String run = UUID.randomUUID().toString();
        StreamExecutionEnvironment env = Cluster.environment(cluster.configuration(request));
        env.setParallelism(2);
        env.enableCheckpointing(31_536_000_000L);
        DataStream<Long> numbers = env.fromSequence(0, Long.MAX_VALUE / 2).setParallelism(1).uid("sequence")
                .map(new Slow(run)).setParallelism(1).uid("slow");
        table.write(numbers.rebalance(), folder.toString(), request.get("uid").asText());
        table.hold(false);
        Path commits = folder.resolve(table.commits());
        Set<String> awaited = new HashSet<>();
        request.path("awaited").forEach(name -> awaited.add(name.asText()));
        int most = awaited.isEmpty() ? 0 : namesIn(commits).size() + awaited.size();
        JobID job = cluster.submit(env, request.path("snapshot").asText(null), false);
        Map<String, Object> out = new HashMap<>();
        try {
            Steps steps = new Steps(cluster, job, run, folder);
            steps.checkpoint();
            steps.checkpoint();
            cluster.await(job, "a commit", () -> count(commits) > 0);
            // What is awaited and more: nothing tells when the global committer, a task of its own, learns of a checkpoint.
            while (!awaited.isEmpty() && !(namesIn(commits).containsAll(awaited) && namesIn(commits).size() > most)) {
                steps.checkpoint();
            }
            table.hold(true);
            steps.checkpoint();
            if (request.hasNonNull("savepoint")) {
                steps.awaitMore();
                out.put("savepoint", cluster.savepoint(job, request.get("savepoint").asText(), "CANONICAL"));
            }
            for (int i = 0; i < request.path("more").asInt(); i++) {
                steps.checkpoint();
            }
        } finally {
            cluster.cancel(job);
            Board.forget(run);
        }
        return out;
    }

    /** Checkpoints of a job. */
    private static final class Steps {
        private final Cluster cluster;
        private final JobID job;
        private final String run;
        private final Path folder;

        Steps(Cluster cluster, JobID job, String run, Path folder) {
            this.cluster = cluster;
            this.job = job;
            this.run = run;
            this.folder = folder;
        }

        void awaitMore() throws Exception {
            int before = Board.of(run).records.size();
            cluster.await(job, "records", () -> Board.of(run).records.size() > before + 50);
        }

        /** Take a checkpoint, and wait until both committers have committed its files. */
        void checkpoint() throws Exception {
            awaitMore();
            long before = count(folder);
            cluster.checkpoint(job);
            cluster.await(job, "both files of a checkpoint", () -> count(folder) >= before + 2);
        }
    }

    /** Return the names in the files of commits. */
    private static Set<String> namesIn(Path commits) throws IOException {
        Set<String> names = new HashSet<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(commits)) {
            for (Path file : files) {
                names.addAll(Files.readAllLines(file));
            }
        }
        return names;
    }

    /** Return the number of files of a folder that are not hidden. */
    private static long count(Path folder) {
        if (!Files.exists(folder)) {
            return 0;
        }
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(f -> Files.isRegularFile(f) && !f.getFileName().toString().startsWith(".")).count();
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
