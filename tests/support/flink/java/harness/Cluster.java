package harness;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Iterator;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.ExceptionUtils;

/** One mini cluster for all jobs. */
final class Cluster implements AutoCloseable {
    static final int SLOTS = 4;
    private static final long PATIENCE_MS = 600_000;
    /** How long parts of Flink wait for each other, in milliseconds. A busy machine may need longer than the ten seconds of the default. */
    private static final String[] PATIENCE = {"akka.ask.timeout", "pekko.ask.timeout", "heartbeat.timeout"};
    private final MiniCluster mini;
    private final Path work;

    Cluster(Path work) throws Exception {
        this.work = work;
        Configuration conf = new Configuration();
        conf.setString("state.checkpoints.num-retained", "3");
        conf.setString("rest.port", "0");
        bePatient(conf);
        // Jobs with a changelog write it to files. Flink reads these options from the cluster, never from a job.
        for (String key : new String[] {"state.changelog.storage", "state.backend.changelog.storage"}) {
            conf.setString(key, "filesystem");
        }
        String changes = work.resolve("changes").resolve("log").toUri().toString();
        for (String key : new String[] {"dstl.dfs.base-path", "state.changelog.dstl.dfs.base-path"}) {
            conf.setString(key, changes);
        }
        conf.setString("io.tmp.dirs", work.toString());
        conf.setString("taskmanager.memory.managed.size", "256m");
        conf.setString("taskmanager.memory.network.min", "128m");
        conf.setString("taskmanager.memory.network.max", "128m");
        mini = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setNumTaskManagers(1).setNumSlotsPerTaskManager(SLOTS).setConfiguration(conf).build());
        mini.start();
    }

    /** For a mini cluster of another configuration, which the caller closes. */
    Cluster(MiniCluster mini, Path work) {
        this.mini = mini;
        this.work = work;
    }

    /** The configuration of a job: what the request's {@code config} says, on a backend, restarting never. */
    Configuration configuration(JsonNode request) {
        Configuration conf = new Configuration();
        for (String key : new String[] {"state.backend", "state.backend.type"}) {
            conf.setString(key, request.path("backend").asText("hashmap"));
        }
        bePatient(conf);
        conf.setString("restart-strategy", "none");
        conf.setString("restart-strategy.type", "none");
        String folder = work.resolve("checkpoints").toUri().toString();
        conf.setString("state.checkpoints.dir", folder);
        conf.setString("execution.checkpointing.dir", folder);
        for (Iterator<Map.Entry<String, JsonNode>> it = request.path("config").fields(); it.hasNext(); ) {
            Map.Entry<String, JsonNode> e = it.next();
            conf.setString(e.getKey(), e.getValue().asText());
        }
        return conf;
    }

    private static void bePatient(Configuration conf) {
        for (String key : PATIENCE) {
            conf.setString(key, String.valueOf(PATIENCE_MS));
        }
    }

    static StreamExecutionEnvironment environment(Configuration conf) {
        return StreamExecutionEnvironment.getExecutionEnvironment(conf);
    }

    /** End a stream. The sink is another class in some releases. */
    static Object discard(DataStream<Long> stream) throws Exception {
        try {
            Class<?> sink = Class.forName("org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink");
            return Reflect.call(stream, "sinkTo", sink.getConstructor().newInstance());
        } catch (ClassNotFoundException e) {
            Class<?> sink = Class.forName("org.apache.flink.streaming.api.functions.sink.DiscardingSink");
            return Reflect.call(stream, "addSink", sink.getConstructor().newInstance());
        }
    }

    /** Submit a job, from a snapshot unless that is null, in the claim mode of its configuration. */
    JobID submit(StreamExecutionEnvironment env, String snapshot, boolean allowNonRestored) throws Exception {
        Map<String, String> given = ((Configuration) env.getConfiguration()).toMap();
        return submit(env.getStreamGraph().getJobGraph(), given, snapshot, allowNonRestored);
    }

    /** Submit a job of another API. */
    JobID submit(JobGraph graph, Map<String, String> given, String snapshot, boolean allowNonRestored) throws Exception {
        if (snapshot != null) {
            Configuration restore = new Configuration();
            SavepointRestoreSettings.toConfiguration(
                    SavepointRestoreSettings.forPath(snapshot, allowNonRestored), restore);
            for (String key : new String[] {"execution.savepoint-restore-mode", "execution.state-recovery.claim-mode"}) {
                if (given.containsKey(key)) {
                    restore.setString(key, given.get(key));
                }
            }
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.fromConfiguration(restore));
        }
        mini.submitJob(graph).get();
        return graph.getJobID();
    }

    /** The answer of the REST API. */
    String rest(String path) throws Exception {
        try (InputStream answer = mini.getRestAddress().get().resolve(path).toURL().openStream()) {
            return new String(answer.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Wait until something holds; a job that ends before is an error, with its cause. */
    void await(JobID job, String what, BooleanSupplier holds) throws Exception {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (!holds.getAsBoolean()) {
            if (mini.getJobStatus(job).get().isTerminalState()) {
                throw failure(job);
            }
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("waited too long for " + what);
            }
            Thread.sleep(10);
        }
    }

    /** Wait for the end of a job that ends by itself. */
    void awaitEnd(JobID job) throws Exception {
        JobResult result = mini.requestJobResult(job).get();
        if (!result.isSuccess()) {
            throw failure(job);
        }
    }

    private IllegalStateException failure(JobID job) throws Exception {
        JobResult result = mini.requestJobResult(job).get();
        String text = result.getSerializedThrowable()
                .map(t -> ExceptionUtils.stringifyException(t.deserializeError(getClass().getClassLoader())))
                .orElse("no cause");
        return new IllegalStateException("job ended: " + text);
    }

    /** Wait until all tasks run: only then a savepoint can be taken. */
    void awaitRunning(JobID job) throws Exception {
        await(job, "all tasks to run", () -> {
            try {
                int tasks = 0;
                for (AccessExecutionVertex task : mini.getExecutionGraph(job).get().getAllExecutionVertices()) {
                    if (task.getExecutionState() != ExecutionState.RUNNING) {
                        return false;
                    }
                    tasks++;
                }
                // While a job initialises, its graph has no tasks yet.
                return tasks > 0;
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** Take a savepoint while the job runs; returns its path. Canonical before 1.15, which has no other format. */
    String savepoint(JobID job, String folder, String format) throws Exception {
        Files.createDirectories(Paths.get(folder));
        awaitRunning(job);
        Object future;
        try {
            Class<?> formats = Class.forName("org.apache.flink.core.execution.SavepointFormatType");
            Object wanted = formats.getMethod("valueOf", String.class).invoke(null, format);
            future = Reflect.call(mini, "triggerSavepoint", job, "file://" + folder, false, wanted);
        } catch (ClassNotFoundException e) {
            future = Reflect.call(mini, "triggerSavepoint", job, "file://" + folder, false);
        }
        return pathOf(job, future);
    }

    /** Stop a job with a canonical savepoint after the end of its input; returns its path. From Flink 1.15 on. */
    String drain(JobID job, String folder) throws Exception {
        Files.createDirectories(Paths.get(folder));
        awaitRunning(job);
        Object canonical = Class.forName("org.apache.flink.core.execution.SavepointFormatType")
                .getMethod("valueOf", String.class).invoke(null, "CANONICAL");
        java.util.concurrent.Future<?> asked = (java.util.concurrent.Future<?>)
                Reflect.call(mini, "stopWithSavepoint", job, "file://" + folder, true, canonical);
        return asked.get().toString().replaceFirst("^file:(//)?", "");
    }

    /** Take a checkpoint while the job runs; returns its path. */
    String checkpoint(JobID job) throws Exception {
        awaitRunning(job);
        return pathOf(job, Reflect.call(mini, "triggerCheckpoint", job));
    }

    /** Wait for the path of a snapshot. A job that ends at the moment when it is asked may never answer. */
    private String pathOf(JobID job, Object future) throws Exception {
        java.util.concurrent.Future<?> asked = (java.util.concurrent.Future<?>) future;
        await(job, "a snapshot", asked::isDone);
        return asked.get().toString().replaceFirst("^file:(//)?", "");
    }

    void cancel(JobID job) throws Exception {
        if (!mini.getJobStatus(job).get().isTerminalState()) {
            mini.cancelJob(job).get();
        }
        mini.requestJobResult(job).get();
    }

    @Override
    public void close() throws Exception {
        mini.close();
    }
}
