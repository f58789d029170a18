package harness;

import com.datasqrl.flinkrunner.stdlib.json.FlinkJsonType;
import com.datasqrl.flinkrunner.stdlib.json.FlinkJsonTypeSerializer;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.agents.runtime.memory.MemoryObjectImpl.MemoryItem;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Keeps JSON trees, which Kryo or a library's serializer writes, and the memory of an agent. A restored job has to find them again. */
public final class TreeJob {
    private static final ObjectMapper JSON = new ObjectMapper();

    private TreeJob() {}

    /** A POJO with a tree. */
    public static class Event {
        public String id;
        public com.fasterxml.jackson.databind.JsonNode payload;
    }

    static ObjectNode tree(long n) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("id", (int) n).put("name", "größe/" + n).put("open", n % 2 == 0).putNull("none");
        tree.put("price", n * 1.25).put("big", Long.MAX_VALUE - n);
        ArrayNode list = tree.putArray("list");
        for (int i = 0; i < n % 3; i++) {
            list.addObject().put("i", i).putArray("inner");
        }
        return tree;
    }

    /** One node of each class, as children whose parser would make another one. */
    static ObjectNode rare(long n) {
        ObjectNode tree = JSON.createObjectNode();
        tree.put("a/b~c", n).put("short", (short) n).put("float", n + 0.5f);
        tree.set("int as long", tree.numberNode(BigInteger.valueOf(n)));
        tree.put("huge", BigInteger.TEN.pow(25).add(BigInteger.valueOf(n)));
        tree.set("decimal", new JsonNodeFactory(true).numberNode(new BigDecimal(n + ".10")));
        tree.put("binary", new byte[] {1, (byte) n});
        tree.putPOJO("pojo", n);
        tree.putArray("missing").add(MissingNode.getInstance());
        tree.set("exact", new JsonNodeFactory(true).objectNode().put("x", 1));
        return tree;
    }

    /** Value nodes, arrays and objects. */
    static com.fasterxml.jackson.databind.JsonNode any(long n) {
        com.fasterxml.jackson.databind.JsonNode[] nodes = {
            tree(n).get("list"), tree(n).get("name"), tree(n).get("price"), tree(n).get("none"), rare(n)
        };
        return nodes[(int) (n % nodes.length)];
    }

    static MemoryItem item(long n) {
        return n % 2 == 1 ? new MemoryItem("user", "cart-" + n) : new MemoryItem(n % 4 == 0 ? (Object) n : rare(n));
    }

    /** The content of a tree, and the class of each node. */
    static Object described(com.fasterxml.jackson.databind.JsonNode node) {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("class", node.getClass().getSimpleName());
        if (node.isObject()) {
            Map<String, Object> children = new LinkedHashMap<>();
            for (Iterator<String> names = node.fieldNames(); names.hasNext(); ) {
                String name = names.next();
                children.put(name, described(node.get(name)));
            }
            found.put("children", children);
        } else if (node.isArray()) {
            List<Object> children = new ArrayList<>();
            node.forEach(child -> children.add(described(child)));
            found.put("children", children);
        } else {
            found.put("value", node.asText());
        }
        return found;
    }

    static final class Keeper extends KeyedNumbers.Keeper {
        private transient ValueState<ObjectNode> tree;
        private transient ValueState<com.fasterxml.jackson.databind.JsonNode> any;
        private transient ValueState<JsonNode> shaded;
        private transient ValueState<Event> event;
        private transient ValueState<FlinkJsonType> sqrl;
        private transient MapState<String, MemoryItem> memory;

        Keeper(String run, boolean write) {
            super(run, write);
        }

        @Override
        public void open(OpenContext context) {
            tree = value("tree", TypeInformation.of(ObjectNode.class));
            any = value("any", TypeInformation.of(com.fasterxml.jackson.databind.JsonNode.class));
            shaded = value("shaded", TypeInformation.of(JsonNode.class));
            event = value("event", TypeInformation.of(Event.class));
            sqrl = getRuntimeContext().getState(new ValueStateDescriptor<>("sqrl", new FlinkJsonTypeSerializer()));
            memory = getRuntimeContext().getMapState(
                    new MapStateDescriptor<>("sensoryMemory", Types.STRING, TypeInformation.of(MemoryItem.class)));
        }

        @Override
        void write(String key, long n) throws Exception {
            tree.update(tree(n));
            any.update(any(n));
            JsonNode parsed = new org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper()
                    .readTree(tree(n).toString());
            shaded.update(parsed);
            Event made = new Event();
            made.id = key;
            made.payload = n % 4 == 0 ? null : tree(n);
            event.update(made);
            sqrl.update(new FlinkJsonType(parsed));
            memory.put("", item(n));
            memory.put("user.name", item(n + 1));
        }

        @Override
        Map<String, Object> read() throws Exception {
            Map<String, Object> values = new LinkedHashMap<>();
            values.put("tree", described(tree.value()));
            values.put("any", described(any.value()));
            values.put("shaded", shaded.value().toString());
            values.put("event", event.value().payload == null ? event.value().id : described(event.value().payload));
            values.put("sqrl", sqrl.value().toString());
            Map<String, Object> items = new TreeMap<>();
            for (Map.Entry<String, MemoryItem> entry : memory.entries()) {
                items.put(entry.getKey(), entry.getValue().toString());
            }
            values.put("sensoryMemory", items);
            return values;
        }
    }

    public static Map<String, Object> run(Cluster cluster, JsonNode request) throws Exception {
        return KeyedNumbers.run(cluster, request, 10, Keeper::new);
    }
}
