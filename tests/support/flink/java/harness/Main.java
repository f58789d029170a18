package harness;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.Map;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonGenerator;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.util.ExceptionUtils;

/** Serves requests, one JSON object a line on standard input, with one JSON object a line on standard output. */
public final class Main {
    private Main() {}

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err); // whatever a job prints
        ObjectMapper json = new ObjectMapper();
        json.getFactory().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Cluster cluster = new Cluster(Paths.get(args[0]))) {
            answers.println(json.writeValueAsString(Values.single("version", EnvironmentInformation.getVersion())));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                Object answer;
                try {
                    answer = answer(cluster, json.readTree(line));
                } catch (Throwable t) {
                    answer = Values.single("error", ExceptionUtils.stringifyException(t));
                }
                answers.println(json.writeValueAsString(answer));
            }
        }
        System.exit(0);
    }

    /** A job that only some machines have: its class is compiled along with these. */
    @SuppressWarnings("unchecked")
    private static Map<String, Object> other(Cluster cluster, JsonNode request) throws Exception {
        return (Map<String, Object>) Class.forName("harness." + request.get("class").asText())
                .getDeclaredMethod("run", Cluster.class, JsonNode.class).invoke(null, cluster, request);
    }

    private static Map<String, Object> answer(Cluster cluster, JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "restore":
                return RestoreJob.run(cluster, request);
            case "windows":
                return WindowJob.run(cluster, request);
            case "sql":
                return SqlJob.run(cluster, request);
            case "follow":
                return FollowJob.run(cluster, request);
            case "class":
                return other(cluster, request);
            case "logical_types":
                return LogicalTypes.describe(request);
            default:
                throw new IllegalArgumentException("no command " + request);
        }
    }
}
