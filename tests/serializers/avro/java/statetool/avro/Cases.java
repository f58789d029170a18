package statetool.avro;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.file.Paths;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.reflect.ReflectData;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.formats.avro.typeutils.AvroSerializer;
import org.apache.flink.runtime.util.EnvironmentInformation;

/**
 * Serializer cases of Avro: {@code Cases FOLDER FLINK_VERSION}.
 *
 * <p>Needs Flink, flink-avro and Avro 1.12 on the class path. What is committed was written with the flink-avro of 1.14, on Flink 1.17.2 and
 * on 2.3.0 (there with the signatures of its interfaces adapted), which the names of the folders say.
 */
public final class Cases {
    private static final String PRIMITIVES = "{'type':'record','name':'Primitives','namespace':'statetool.cases','fields':["
            + "{'name':'b','type':'boolean'},{'name':'i','type':'int'},{'name':'l','type':'long'},{'name':'f','type':'float'},"
            + "{'name':'d','type':'double'},{'name':'raw','type':'bytes'},{'name':'text','type':'string'},{'name':'nothing','type':'null'}]}";
    private static final String UNIONS = "{'type':'record','name':'Unions','namespace':'statetool.cases','fields':["
            + "{'name':'first','type':['null','long'],'default':null},{'name':'last','type':['string','null'],'default':'x'},"
            + "{'name':'only','type':['int']},{'name':'none','type':['null']},"
            + "{'name':'two','type':['int','string']},"
            + "{'name':'many','type':['null','boolean','double','bytes','string',{'type':'record','name':'Left','fields':[{'name':'a','type':'int'}]},"
            + "{'type':'record','name':'Right','fields':[{'name':'a','type':'string'},{'name':'left','type':['null','Left']}]},"
            + "{'type':'enum','name':'Side','symbols':['L','R']},{'type':'fixed','name':'Four','size':4},"
            + "{'type':'array','items':'Left'},{'type':'map','values':['null','int']}]}]}";
    private static final String NESTED = "{'type':'record','name':'Nested','namespace':'statetool.cases','fields':["
            + "{'name':'numbers','type':{'type':'array','items':'int'}},{'name':'flags','type':{'type':'array','items':'boolean'}},"
            + "{'name':'words','type':{'type':'array','items':['null','string']}},"
            + "{'name':'grid','type':{'type':'array','items':{'type':'array','items':'long'}}},"
            + "{'name':'counts','type':{'type':'map','values':'int'}},"
            + "{'name':'deep','type':{'type':'map','values':{'type':'array','items':{'type':'map','values':'double'}}}},"
            + "{'name':'points','type':{'type':'array','items':{'type':'record','name':'Point','fields':["
            + "{'name':'x','type':'double'},{'name':'y','type':'double'},{'name':'label','type':['null','string']}]}}},"
            + "{'name':'best','type':['null','Point']},{'name':'suit','type':{'type':'enum','name':'Suit','symbols':['SPADES','HEARTS']}},"
            + "{'name':'hash','type':{'type':'fixed','name':'Md5','size':16}},{'name':'empty','type':{'type':'record','name':'Empty','fields':[]}},"
            + "{'name':'nothing','type':{'type':'array','items':'Empty'}},{'name':'second','type':'Md5'}]}";
    private static final String TREE = "{'type':'record','name':'Tree','namespace':'statetool.cases','fields':["
            + "{'name':'value','type':'string'},{'name':'children','type':{'type':'array','items':'Tree'}},{'name':'next','type':['null','Tree']},"
            + "{'name':'named','type':{'type':'map','values':'Tree'}},{'name':'either','type':['int','Tree','string']}]}";
    private static final String MUTUAL = "{'type':'record','name':'Person','namespace':'statetool.cases','fields':["
            + "{'name':'name','type':'string'},{'name':'home','type':['null',{'type':'record','name':'House','fields':["
            + "{'name':'rooms','type':'int'},{'name':'owners','type':{'type':'array','items':'Person'}}]}]},{'name':'other','type':['null','House']}]}";
    private static final String NAMES = "{'type':'record','name':'a.b.Outer','doc':'says \\\"much\\\" é','aliases':['Old','c.Older'],'custom':{'x':[1,null]},'fields':["
            + "{'name':'inner','type':{'type':'record','name':'Inner','namespace':'x.y','fields':[{'name':'e','type':"
            + "{'type':'enum','name':'E','symbols':['P','Q'],'default':'P'}}]},'doc':'d','order':'ignore','aliases':['was']},"
            + "{'name':'same','type':'x.y.E'},{'name':'again','type':'x.y.Inner'},"
            + "{'name':'bare','type':{'type':'record','name':'Bare','namespace':'','fields':[{'name':'type','type':'int','default':7}]}},"
            + "{'name':'near','type':{'type':'fixed','name':'Near','size':1}},{'name':'far','type':['null','a.b.Near','Bare'],'default':null},"
            + "{'name':'type','type':{'type':'string','avro.java.string':'String'},'order':'descending'}]}";
    private static final String LOGICAL = "{'type':'record','name':'Logical','namespace':'statetool.cases','fields':["
            + field("date", "int", "date") + field("time_millis", "int", "time-millis") + field("time_micros", "long", "time-micros")
            + field("ts_millis", "long", "timestamp-millis") + field("ts_micros", "long", "timestamp-micros")
            + field("ts_nanos", "long", "timestamp-nanos") + field("local_millis", "long", "local-timestamp-millis")
            + field("local_micros", "long", "local-timestamp-micros") + field("local_nanos", "long", "local-timestamp-nanos")
            + field("uuid", "string", "uuid")
            + "{'name':'money','type':{'type':'bytes','logicalType':'decimal','precision':38,'scale':9}},"
            + "{'name':'whole','type':{'type':'bytes','logicalType':'decimal','precision':5}},"
            + "{'name':'cents','type':{'type':'fixed','name':'Cents','size':6,'logicalType':'decimal','precision':12,'scale':2}},"
            + "{'name':'span','type':{'type':'fixed','name':'Span','size':12,'logicalType':'duration'}},"
            + "{'name':'maybe','type':['null',{'type':'long','logicalType':'timestamp-micros'}]},"
            + "{'name':'prices','type':{'type':'array','items':{'type':'bytes','logicalType':'decimal','precision':9,'scale':3}}},"
            + "{'name':'unknown','type':{'type':'long','logicalType':'no-such-type'}}]}";

    private Cases() {}

    public static void main(String[] args) throws Exception {
        if (!EnvironmentInformation.getVersion().equals(args[1])) {
            throw new IllegalStateException("Flink " + EnvironmentInformation.getVersion() + ", not " + args[1]);
        }
        Emit emit = new Emit(Paths.get(args[0]));
        generic(emit, "avro-primitives", PRIMITIVES, primitives(schema(PRIMITIVES)));
        generic(emit, "avro-unions", UNIONS, unions(schema(UNIONS)));
        generic(emit, "avro-nested", NESTED, nested(schema(NESTED)));
        generic(emit, "avro-tree", TREE, trees(schema(TREE)));
        generic(emit, "avro-mutual", MUTUAL, people(schema(MUTUAL)));
        generic(emit, "avro-names", NAMES, names(schema(NAMES)));
        generic(emit, "avro-logical", LOGICAL, logical(schema(LOGICAL)));
        emit.write("avro-specific", new AvroSerializer<>(Payment.class), Payment.MODEL$, Payment.SCHEMA$, payments());
        Schema customer = ReflectData.get().getSchema(Customer.class);
        emit.write("avro-reflect", new AvroSerializer<>(Customer.class), ReflectData.get(), customer, customers());
        emit.write("avro-reflect-text", new AvroSerializer<>(String.class), ReflectData.get(), Schema.create(Schema.Type.STRING),
                Arrays.asList("", "é", "x".repeat(200)));
        emit.write("avro-reflect-enum", new AvroSerializer<>(Customer.Rank.class), ReflectData.get(),
                ReflectData.get().getSchema(Customer.Rank.class), Arrays.asList(Customer.Rank.SILVER, Customer.Rank.BRONZE));
        oldSnapshots(emit);
        evolved(emit);
    }

    private static String field(String name, String type, String logical) {
        return "{'name':'" + name + "','type':{'type':'" + type + "','logicalType':'" + logical + "'}},";
    }

    private static Schema schema(String text) {
        return new Schema.Parser().parse(text.replace('\'', '"'));
    }

    private static void generic(Emit emit, String name, String text, List<GenericRecord> values) throws Exception {
        emit.write(name, new AvroSerializer<>(GenericRecord.class, schema(text)), GenericData.get(), schema(text), values);
    }

    private static GenericRecord record(Schema schema, Object... values) {
        GenericData.Record found = new GenericData.Record(schema);
        for (int i = 0; i < schema.getFields().size(); i++) {
            found.put(i, values[i]);
        }
        return found;
    }

    private static ByteBuffer bytes(int... values) {
        byte[] found = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            found[i] = (byte) values[i];
        }
        return ByteBuffer.wrap(found);
    }

    private static ByteBuffer unscaled(String number) {
        return ByteBuffer.wrap(new BigInteger(number).toByteArray());
    }

    private static <V> Map<String, V> map(Object... pairs) {
        Map<String, V> found = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            @SuppressWarnings("unchecked")
            V value = (V) pairs[i + 1];
            found.put((String) pairs[i], value);
        }
        return found;
    }

    private static List<GenericRecord> primitives(Schema s) {
        List<GenericRecord> found = new ArrayList<>();
        found.add(record(s, false, 0, 0L, 0f, 0d, bytes(), "", null));
        found.add(record(s, true, Integer.MIN_VALUE, Long.MIN_VALUE, -0f, -0d, bytes(0, 255, 128), "\0\u007f", null));
        found.add(record(s, true, Integer.MAX_VALUE, Long.MAX_VALUE, Float.NaN, Double.NaN, bytes(new int[300]), "é߿ࠀ\uffff", null));
        found.add(record(s, false, -1, 1L << 40, Float.MIN_VALUE, Double.MIN_VALUE, bytes(1), "\ud83d\ude00 \ud834\udd1e", null));
        found.add(record(s, false, 77, -5L, Float.NEGATIVE_INFINITY, Double.POSITIVE_INFINITY, bytes(7), "a".repeat(127), null));
        found.add(record(s, false, 128, 128L, 1.5f, 0.1d, bytes(7), "b".repeat(128), null));
        found.add(record(s, false, 16384, 16384L, 3.4028235e38f, 1e300, bytes(7), "\u4e2d\ud83d\ude00".repeat(3000), null));
        return found;
    }

    private static List<GenericRecord> unions(Schema s) {
        List<Schema> many = s.getField("many").schema().getTypes();
        GenericRecord left = record(many.get(5), 5);
        List<Object> choices = Arrays.asList(null, true, 2.5d, bytes(1, 2), "text", left, record(many.get(6), "r", null),
                record(many.get(6), "r", left), new GenericData.EnumSymbol(many.get(7), "R"),
                new GenericData.Fixed(many.get(8), new byte[] {1, 2, 3, -4}), Collections.emptyList(), Arrays.asList(left, left),
                map(), map("one", 1, "", null));
        List<GenericRecord> found = new ArrayList<>();
        for (int i = 0; i < choices.size(); i++) {
            found.add(record(s, i % 2 == 0 ? null : (Object) (long) i, i % 3 == 0 ? null : "s" + i, i, null, i % 2 == 0 ? (Object) i : "odd", choices.get(i)));
        }
        return found;
    }

    private static List<GenericRecord> nested(Schema s) {
        Schema point = s.getField("points").schema().getElementType();
        Schema suit = s.getField("suit").schema();
        Schema md5 = s.getField("hash").schema();
        Schema empty = s.getField("empty").schema();
        GenericRecord p = record(point, 1.5, -2.0, null);
        GenericRecord q = record(point, 0.0, 1e-9, "q");
        GenericData.Fixed zeros = new GenericData.Fixed(md5, new byte[16]);
        GenericData.Fixed ones = new GenericData.Fixed(md5, new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, -1});
        List<Integer> numbers = new ArrayList<>();
        List<Boolean> flags = new ArrayList<>();
        for (int i = 0; i < 16400; i++) {
            numbers.add(i * 7919);
            flags.add(i % 3 == 0);
        }
        Map<String, Integer> counts = new LinkedHashMap<>();
        for (int i = 0; i < 130; i++) {
            counts.put("key " + i, i);
        }
        GenericRecord none = record(empty);
        return Arrays.asList(
                record(s, Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), map(), map(),
                        Collections.emptyList(), null, new GenericData.EnumSymbol(suit, "SPADES"), zeros, none, Collections.emptyList(), ones),
                record(s, numbers.subList(0, 128), flags, Arrays.asList("a", null, ""), Arrays.asList(Arrays.asList(1L, 2L), Collections.emptyList()),
                        counts, map("k", Arrays.asList(map("x", 1.0), map()), "", Collections.emptyList()), Arrays.asList(p, q), p,
                        new GenericData.EnumSymbol(suit, "HEARTS"), ones, none, Arrays.asList(none, none, none), zeros),
                record(s, numbers, flags.subList(0, 127), Arrays.asList((Object) null), Collections.singletonList(Arrays.asList(-1L)), map("one", 1),
                        map("k", Collections.singletonList(map("y", Double.NaN))), Collections.nCopies(200, q), q,
                        new GenericData.EnumSymbol(suit, "SPADES"), ones, none, Collections.nCopies(300, none), ones));
    }

    private static GenericRecord tree(Schema s, String value, List<GenericRecord> children, GenericRecord next, Object either) {
        return record(s, value, children, next, next == null ? map() : map("same", next), either);
    }

    private static List<GenericRecord> trees(Schema s) {
        GenericRecord leaf = tree(s, "leaf", Collections.emptyList(), null, 1);
        GenericRecord two = tree(s, "two", Arrays.asList(leaf, leaf), leaf, "text");
        GenericRecord chain = leaf;
        for (int i = 0; i < 5; i++) {
            chain = tree(s, "chain " + i, Collections.emptyList(), chain, i);
        }
        return Arrays.asList(leaf, two, tree(s, "deep", Arrays.asList(two, leaf), two, two), chain);
    }

    private static List<GenericRecord> people(Schema s) {
        Schema house = s.getField("other").schema().getTypes().get(1);
        GenericRecord alone = record(s, "alone", null, null);
        GenericRecord shed = record(house, 1, Collections.emptyList());
        GenericRecord villa = record(house, 9, Arrays.asList(alone, record(s, "owner", shed, shed)));
        return Arrays.asList(alone, record(s, "rich", villa, shed), record(s, "guest", null, villa));
    }

    private static List<GenericRecord> names(Schema s) {
        Schema inner = s.getField("inner").schema();
        Schema e = s.getField("same").schema();
        Schema bare = s.getField("bare").schema();
        Schema near = s.getField("near").schema();
        GenericRecord p = record(inner, new GenericData.EnumSymbol(e, "P"));
        GenericRecord q = record(inner, new GenericData.EnumSymbol(e, "Q"));
        GenericData.Fixed one = new GenericData.Fixed(near, new byte[] {9});
        return Arrays.asList(record(s, p, new GenericData.EnumSymbol(e, "Q"), q, record(bare, 1), one, null, "t"),
                record(s, q, new GenericData.EnumSymbol(e, "P"), p, record(bare, -1), one, one, ""),
                record(s, q, new GenericData.EnumSymbol(e, "P"), p, record(bare, -1), one, record(bare, 8), "é"));
    }

    private static List<GenericRecord> logical(Schema s) {
        Schema cents = s.getField("cents").schema();
        Schema span = s.getField("span").schema();
        return Arrays.asList(
                record(s, 0, 0, 0L, 0L, 0L, 0L, 0L, 0L, 0L, "00000000-0000-0000-0000-000000000000", unscaled("0"), unscaled("0"),
                        new GenericData.Fixed(cents, new byte[6]), new GenericData.Fixed(span, new byte[12]), null, Collections.emptyList(), 0L),
                record(s, -1, 86_399_999, 86_399_999_999L, -1L, -1L, -1L, -1L, -1L, -1L, "123e4567-e89b-12d3-a456-426614174000",
                        unscaled("-99999999999999999999999999999999999999"), unscaled("99999"),
                        new GenericData.Fixed(cents, new byte[] {-1, -1, -1, -1, -1, -128}),
                        new GenericData.Fixed(span, new byte[] {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}), -1_500_001L,
                        Arrays.asList(unscaled("-128"), unscaled("127"), unscaled("123456789")), Long.MAX_VALUE),
                record(s, 19_000, 3_661_001, 3_661_000_001L, 1_700_000_000_123L, 1_700_000_000_123_456L, 1_700_000_000_123_456_789L,
                        1_700_000_000_123L, 1_700_000_000_123_456L, 1_700_000_000_123_456_789L, "any text",
                        unscaled("1"), unscaled("-99999"), new GenericData.Fixed(cents, new byte[] {0, 0, 0, 1, 0, 0}),
                        new GenericData.Fixed(span, new byte[] {-1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 1}), 1L, Arrays.asList(unscaled("1")), -7L));
    }

    private static List<Payment> payments() {
        Payment first = new Payment();
        first.id = "p-1";
        first.at = Instant.ofEpochSecond(1_700_000_000L, 123_000_000);
        first.exact = Instant.ofEpochSecond(-1, 999_999_000);
        first.day = LocalDate.of(2024, 2, 29);
        first.clock = LocalTime.of(23, 59, 59, 999_000_000);
        first.clockExact = LocalTime.of(1, 2, 3, 4_000);
        first.here = LocalDateTime.of(1969, 12, 31, 23, 59, 59, 1_000_000);
        first.amount = new BigDecimal("-1234567890.12");
        first.kind = Kind.GIFT;
        first.lines = Arrays.asList(new Line("sku-1", 1), new Line("", -2));
        first.tags = map("red", 1L, "blue", Long.MIN_VALUE);
        Payment second = new Payment();
        second.id = "";
        second.at = Instant.EPOCH;
        second.exact = Instant.EPOCH;
        second.day = LocalDate.of(1, 1, 1);
        second.clock = LocalTime.MIDNIGHT;
        second.clockExact = LocalTime.MIDNIGHT;
        second.here = LocalDateTime.of(9999, 12, 31, 0, 0);
        second.amount = new BigDecimal("0.00");
        second.kind = Kind.CARD;
        second.paid = Instant.ofEpochMilli(5);
        second.lines = Collections.emptyList();
        second.tags = map();
        return Arrays.asList(first, second);
    }

    private static List<Customer> customers() {
        Customer first = new Customer();
        first.active = true;
        first.small = -3;
        first.number = 4;
        first.big = 1L << 50;
        first.ratio = 0.25f;
        first.exact = -1e-300;
        first.name = "Zoë \ud83d\ude00";
        first.raw = new byte[] {0, -1};
        first.scores = new int[] {3, 2, 1};
        first.words = Arrays.asList("a", "");
        first.rank = Customer.Rank.SILVER;
        first.worth = new BigDecimal("12.340");
        first.home = new Customer.Address();
        first.home.street = "High";
        first.home.number = 7;
        Customer.Address nowhere = new Customer.Address();
        nowhere.street = "";
        first.places = map("work", nowhere, "home", first.home);
        Customer second = new Customer();
        second.name = "";
        second.nick = "nick";
        second.raw = new byte[0];
        second.scores = new int[0];
        second.words = Collections.emptyList();
        second.rank = Customer.Rank.BRONZE;
        second.worth = BigDecimal.ZERO;
        second.places = map();
        return Arrays.asList(first, second);
    }

    /** Versions 1 and 2 as Flink up to 1.11 wrote them: Flink itself reads them here, its own serializer writes the values. */
    private static void oldSnapshots(Emit emit) throws Exception {
        Schema s = schema(UNIONS);
        DataOutputSerializer second = new DataOutputSerializer(256);
        second.writeUTF("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot");
        second.writeInt(2);
        second.writeUTF(GenericRecord.class.getName());
        second.writeUTF(s.toString(false));
        emit.write("avro-snapshot-2", second.getCopyOfBuffer(), new AvroSerializer<>(GenericRecord.class, s), GenericData.get(), s, unions(s));
        DataOutputSerializer first = new DataOutputSerializer(256);
        first.writeUTF("org.apache.flink.formats.avro.typeutils.AvroSerializer$AvroSchemaSerializerConfigSnapshot");
        first.writeInt(1);
        first.writeUTF(s.toString(false));
        emit.write("avro-snapshot-1", first.getCopyOfBuffer(), new AvroSerializer<>(GenericRecord.class, s), GenericData.get(), s, unions(s));
    }

    /** Values of an older class, before and after Flink moved them to the newer one. */
    private static void evolved(Emit emit) throws Exception {
        String old = Line.SCHEMA$.toString().replace("}]", "},{\"name\":\"gone\",\"type\":\"double\"}]").replace("\"int\"", "\"int\",\"default\":1");
        Schema before = new Schema.Parser().parse(old);
        List<GenericRecord> values = Arrays.asList(record(before, "s", 3, 0.5), record(before, "", 4, -0.5));
        DataOutputSerializer snapshot = new DataOutputSerializer(256);
        snapshot.writeUTF("org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot");
        snapshot.writeInt(2);
        snapshot.writeUTF(Line.class.getName());
        snapshot.writeUTF(old);
        TypeSerializerSnapshot<Line> read = TypeSerializerSnapshot.readVersionedSnapshot(
                new DataInputDeserializer(snapshot.getCopyOfBuffer()), Cases.class.getClassLoader());
        AvroSerializer<GenericRecord> writer = new AvroSerializer<>(GenericRecord.class, before);
        List<Line> moved = new ArrayList<>();
        for (GenericRecord value : values) {
            DataOutputSerializer out = new DataOutputSerializer(64);
            writer.serialize(value, out);
            moved.add(read.restoreSerializer().deserialize(new DataInputDeserializer(out.getCopyOfBuffer())));
        }
        emit.write("avro-evolved-before", writer, GenericData.get(), before, values);
        emit.write("avro-evolved-after", read.restoreSerializer(), Payment.MODEL$, Line.SCHEMA$, moved);
    }
}
