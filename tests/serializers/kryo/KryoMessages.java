import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import com.google.protobuf.TextFormat;
import com.google.protobuf.Timestamp;
import com.google.protobuf.UnknownFieldSet;
import com.twitter.chill.protobuf.ProtobufSerializer;
import com.twitter.chill.thrift.TBaseSerializer;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.thrift.TBase;
import shop.thrift.*;
import shop.v2.Orders.Event;
import shop.v2.Orders.Level;
import shop.v3.Orders.Item;
import shop.v3.Orders.Order;
import shop.v3.Orders.State;

/**
 * Writes Protobuf and Thrift messages with Flink's KryoSerializer and chill's serializers for them; a line each of how they are
 * registered, name, bytes in hex, and what the message prints (Protobuf's text format, Thrift's toString).
 *
 * <p>Compile against flink-dist of the release, chill-protobuf, chill-thrift, protobuf-java 3.21 and libthrift 0.16, with the sources that
 * protoc 3.21 and thrift 0.17 make of orders3.proto, orders2.proto and shop.thrift; the only argument is the release, the output
 * {@code messages-VERSION.tsv}.
 */
public class KryoMessages {
    public static class Holder {
        public Order order;
        public Parcel parcel;
        public String note;
        public List<Item> items;
        public Message any;
    }

    static String hex(byte[] raw) {
        StringBuilder text = new StringBuilder();
        for (byte b : raw) text.append(String.format("%02x", b));
        return text.toString();
    }

    static String printed(Object value) {
        return value instanceof Message ? TextFormat.printer().shortDebugString((Message) value) : String.valueOf(value);
    }

    static Item item(String sku, int count, Item inside, String... labels) {
        Item.Builder b = Item.newBuilder().setSku(sku).setCount(count).addAllLabels(Arrays.asList(labels));
        return (inside == null ? b : b.setInside(inside)).build();
    }

    static Order full() {
        return Order.newBuilder()
                .setId(-5).setName("Zoë €\uD83D\uDE00").addItems(item("a", 1, item("b", 2, null), "x", ""))
                .addItems(Item.getDefaultInstance()).putStock("k", -1).putById(7, item("m", 3, null)).setState(State.SENT)
                .setCash(-9).setMaybe(0).addAllDeltas(Arrays.asList(0, -1, 1 << 30)).setRaw(ByteString.copyFrom(new byte[] {0, -1}))
                .setPrice(-0.5).setRatio(0.1f).setStamp(-1L).setOffset(-2).setPaid(true)
                .addAllStates(Arrays.asList(State.NEW, State.PAID)).setAt(Timestamp.newBuilder().setSeconds(1700000000).setNanos(5))
                .setBig(-1L).setAny(Any.pack(item("packed", 4, null))).build();
    }

    static Map<String, Object> protos() {
        Map<String, Object> v = new LinkedHashMap<>();
        v.put("full", full());
        v.put("empty", Order.getDefaultInstance());
        v.put("card", Order.newBuilder().setCard("").build());
        v.put("note", Order.newBuilder().setOther(Order.Note.newBuilder().setUrgent(true)).build());
        v.put("odd-enum", Order.newBuilder().setStateValue(99).addStatesValue(-3).build());
        v.put("nan", Order.newBuilder().setPrice(Double.NaN).setRatio(Float.NEGATIVE_INFINITY).build());
        v.put("unknown", Order.newBuilder().setId(3).addItems(item("u", 0, null).toBuilder().setUnknownFields(more()).build())
                .setUnknownFields(more()).build());
        v.put("maps", Order.newBuilder().putStock("a", 1).putStock("b", 0).putStock("", 3).putById(0, Item.getDefaultInstance()).build());
        v.put("item", item("alone", -1, null, "l"));
        v.put("event", Event.newBuilder().setId(1).build());
        v.put("event-full", Event.newBuilder().setId(2).setText("t").setCount(42).addAllPacked(Arrays.asList(1, -1, 300))
                .addAllLoose(Arrays.asList(1, -1)).setLevel(Level.LOW).setPlace(Event.Place.newBuilder().setX(1.5))
                .setExtension(shop.v2.Orders.origin, "web").build());
        v.put("event-defaults", Event.newBuilder().setId(0).setText("").setCount(0).setLevel(Level.MID).build());
        return v;
    }

    static UnknownFieldSet more() {
        return UnknownFieldSet.newBuilder()
                .addField(500, UnknownFieldSet.Field.newBuilder().addVarint(7).addVarint(-1).build())
                .addField(501, UnknownFieldSet.Field.newBuilder().addLengthDelimited(ByteString.copyFromUtf8("later")).build())
                .addField(502, UnknownFieldSet.Field.newBuilder().addFixed32(1).addFixed64(2).build())
                .addField(503, UnknownFieldSet.Field.newBuilder().addGroup(UnknownFieldSet.newBuilder()
                        .addField(1, UnknownFieldSet.Field.newBuilder().addVarint(1).build()).build()).build())
                .build();
    }

    static Map<String, Object> parcels() {
        Map<String, Object> v = new LinkedHashMap<>();
        Parcel p = new Parcel();
        p.setId(-7L).setName("Zoë €\uD83D\uDE00").setParts(new ArrayList<>(List.of(new Part("a", 1), new Part())));
        p.setStock(new TreeMap<>(Map.of("k", -1, "l", 2))).setSizes(new TreeSet<>(Set.of((short) -1, (short) 300)));
        p.setKind(Kind.LARGE).setPaid(true).setPrice(-0.5).setRaw(ByteBuffer.wrap(new byte[] {0, -1}));
        p.setChoice(Choice.number(1L << 40)).setSmall((byte) -3).setCount(0).setFlags(List.of(true, false));
        p.setNested(Map.of(5L, List.of(new Part("deep", 2)))).setOdd("odd");
        v.put("parcel", p);
        v.put("parcel-min", new Parcel().setId(0L));
        v.put("parcel-nan", new Parcel().setId(1L).setPrice(Double.NaN).setChoice(Choice.text("")));
        v.put("part", new Part("alone", -1));
        return v;
    }

    static SerializerConfigImpl defaults() throws Exception {
        SerializerConfigImpl c = new SerializerConfigImpl();
        c.addDefaultKryoSerializer(Message.class, ProtobufSerializer.class);
        c.addDefaultKryoSerializer(TBase.class, (Class) TBaseSerializer.class);
        return c;
    }

    static void section(String name, Class<?> type, SerializerConfigImpl config, Map<String, Object> values) throws Exception {
        KryoSerializer<Object> s = new KryoSerializer<>((Class) type, config);
        DataOutputSerializer out = new DataOutputSerializer(64);
        TypeSerializerSnapshot.writeVersionedSnapshot(out, s.snapshotConfiguration());
        System.out.println(name + "\tsnapshot\t" + hex(out.getCopyOfBuffer()) + "\t");
        for (Map.Entry<String, Object> e : values.entrySet()) {
            out.clear();
            s.serialize(e.getValue(), out);
            System.out.println(name + "\t" + e.getKey() + "\t" + hex(out.getCopyOfBuffer()) + "\t" + printed(e.getValue()));
        }
    }

    static Map<String, Object> only(Map<String, Object> from, Class<?> type) {
        Map<String, Object> found = new LinkedHashMap<>(from);
        found.values().removeIf(v -> v.getClass() != type);
        return found;
    }

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[0])) throw new IllegalStateException(EnvironmentInformation.getVersion());
        Map<String, Object> all = protos();
        all.putAll(parcels());
        section("by-default", Object.class, defaults(), all);
        SerializerConfigImpl c = new SerializerConfigImpl();
        c.registerTypeWithKryoSerializer(Order.class, ProtobufSerializer.class);
        section("order", Order.class, c, only(all, Order.class));
        c = new SerializerConfigImpl();
        c.registerTypeWithKryoSerializer(Event.class, ProtobufSerializer.class);
        section("event", Event.class, c, only(all, Event.class));
        c = new SerializerConfigImpl();
        c.registerTypeWithKryoSerializer(Parcel.class, (Class) TBaseSerializer.class);
        section("parcel", Parcel.class, c, only(all, Parcel.class));
        Holder h = new Holder();
        h.order = full(); h.parcel = (Parcel) parcels().get("parcel"); h.note = "n";
        h.items = new ArrayList<>(Arrays.asList(item("i", 1, null), null, item("j", 2, null))); h.any = item("any", 5, null);
        Map<String, Object> holders = new LinkedHashMap<>();
        holders.put("holder", h);
        holders.put("holder-empty", new Holder());
        c = defaults();
        c.registerKryoType(Item.class);
        section("holder", Holder.class, c, holders);
    }
}
