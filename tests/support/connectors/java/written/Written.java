package writing;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

/** One line of JSON per state that a connector has written: its bytes, and what they mean. */
public final class Written {
    private static final ObjectMapper JSON = new ObjectMapper();

    static void print(String connector, String release, String role, int version, byte[] data, Object expected)
            throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("connector", connector);
        line.put("release", release);
        line.put("role", role);
        line.put("version", version);
        line.put("data", hex(data));
        line.put("expected", expected);
        System.out.println(JSON.writeValueAsString(line));
    }

    static String hex(byte[] data) {
        StringBuilder text = new StringBuilder();
        for (byte b : data) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
