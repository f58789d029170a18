package jobs;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import org.apache.avro.Schema;
import org.apache.avro.specific.SpecificRecordBase;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.formats.avro.typeutils.AvroSerializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** A record as Avro's compiler generates it, as far as Flink looks at it. Each has a field {@code value}, and perhaps more. */
abstract class Generated extends SpecificRecordBase {
    private final Object[] values = new Object[getSchema().getFields().size()];

    @Override
    public Object get(int field) {
        return values[field];
    }

    @Override
    public void put(int field, Object value) {
        values[field] = value;
    }
}

/** Stores a record per key, and shows those that it finds. */
final class Store<T extends Generated> extends RichFlatMapFunction<String, String> {
    private final Class<T> type;
    private transient ValueState<T> stored;

    Store(Class<T> type) {
        this.type = type;
    }

    @Override
    public void open(OpenContext context) throws Exception {
        stored = getRuntimeContext().getState(new ValueStateDescriptor<>("record", new AvroSerializer<>(type)));
    }

    @Override
    public void flatMap(String line, Collector<String> out) throws Exception {
        T found = stored.value();
        if (found == null) {
            T made = type.getDeclaredConstructor().newInstance();
            for (Schema.Field field : made.getSchema().getFields()) {
                made.put(field.pos(), sample(field.schema(), Job.number(line)));
            }
            stored.update(made);
        } else {
            Schema.Field field = found.getSchema().getField("value");
            out.collect(line.split(",")[0] + ":" + show(field.schema(), found.get(field.pos())));
            stored.update(found); // written with the new schema
        }
    }

    /** The value as the getter of a generated class converts it. */
    private static Object show(Schema schema, Object value) {
        String type = schema.getLogicalType() == null ? "" : schema.getLogicalType().getName();
        switch (type) {
            case "decimal":
                ByteBuffer bytes = ((ByteBuffer) value).duplicate();
                byte[] unscaled = new byte[bytes.remaining()];
                bytes.get(unscaled);
                int scale = ((org.apache.avro.LogicalTypes.Decimal) schema.getLogicalType()).getScale();
                return new BigDecimal(new java.math.BigInteger(unscaled), scale).stripTrailingZeros().toPlainString();
            case "timestamp-micros":
                return (Long) value / 1000;
            default:
                return value;
        }
    }

    private static Object sample(Schema schema, int number) {
        if (schema.getLogicalType() != null && schema.getLogicalType().getName().equals("decimal")) {
            byte[] bytes = BigDecimal.valueOf(100L * number).unscaledValue().toByteArray();
            return ByteBuffer.wrap(bytes);
        }
        switch (schema.getType()) {
            case INT:
                return number;
            case LONG:
                return 1_700_000_000_000L + number;
            case STRING:
                return "text" + number;
            case ENUM:
                return new org.apache.avro.generic.GenericData.EnumSymbol(schema, schema.getEnumSymbols().get(number % schema.getEnumSymbols().size()));
            case UNION:
                java.util.List<Schema> types = new java.util.ArrayList<>(schema.getTypes());
                types.removeIf(type -> type.getType() == Schema.Type.NULL);
                return sample(types.get(types.size() - 1), number);
            case BYTES:
                return ByteBuffer.wrap(new byte[] {(byte) number});
            default:
                throw new IllegalArgumentException(schema.toString());
        }
    }
}

final class AvroSame extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroSame$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}");

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroDecimalScale extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDecimalScale$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDecimalScale$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":4}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroDecimalPrecision extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDecimalPrecision$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":9,\"scale\":2}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDecimalPrecision$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":18,\"scale\":2}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroMillisToMicros extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroMillisToMicros$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroMillisToMicros$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroMillisAdded extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroMillisAdded$\",\"fields\":[{\"name\":\"value\",\"type\":\"long\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroMillisAdded$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroEnumDefault extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumDefault$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"RED\",\"BLUE\"]}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumDefault$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"RED\",\"GREEN\"],\"default\":\"GREEN\"}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroEnumFewer extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumFewer$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"RED\",\"BLUE\"]}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumFewer$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"RED\"]}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroEnumOrder extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumOrder$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"RED\",\"BLUE\"]}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumOrder$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[\"BLUE\",\"RED\"]}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroAdded extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroAdded$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroAdded$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"},{\"name\":\"more\",\"type\":\"long\",\"default\":7}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroAddedFirst extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroAddedFirst$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroAddedFirst$\",\"fields\":[{\"name\":\"more\",\"type\":\"long\",\"default\":7},{\"name\":\"value\",\"type\":\"int\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroUndefaulted extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUndefaulted$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUndefaulted$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"},{\"name\":\"more\",\"type\":\"long\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroUnionOrder extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUnionOrder$\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\"]}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUnionOrder$\",\"fields\":[{\"name\":\"value\",\"type\":[\"int\",\"null\"]}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroUnionNarrowed extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUnionNarrowed$\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\",\"string\"]}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroUnionNarrowed$\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\"]}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroNullable extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNullable$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNullable$\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\"]}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroNotNullable extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNotNullable$\",\"fields\":[{\"name\":\"value\",\"type\":[\"null\",\"int\"]}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNotNullable$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroPromoted extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroPromoted$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroPromoted$\",\"fields\":[{\"name\":\"value\",\"type\":\"long\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroNarrowed extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNarrowed$\",\"fields\":[{\"name\":\"value\",\"type\":\"long\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNarrowed$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroRenamed extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroRenamed$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroRenamed$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"},{\"name\":\"other\",\"type\":[\"null\",\"string\"],\"default\":null}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroNamespace extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNamespace$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"other\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroNamespaceAlias extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroNamespaceAlias$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"other\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}],\"aliases\":[\"jobs.AvroNamespaceAlias$.Record\"]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroFieldAlias extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroFieldAlias$\",\"fields\":[{\"name\":\"old\",\"type\":\"int\"},{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroFieldAlias$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\",\"aliases\":[\"old\"]}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroEnumNamespace extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumNamespace$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"namespace\":\"a\",\"symbols\":[\"RED\",\"BLUE\"]}}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroEnumNamespace$\",\"fields\":[{\"name\":\"value\",\"type\":{\"type\":\"enum\",\"name\":\"Color\",\"namespace\":\"b\",\"symbols\":[\"RED\",\"BLUE\"]}}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}

final class AvroDocumented extends Job {
    public static final class Record extends Generated {
        public static final Schema SCHEMA$ = new Schema.Parser().parse(
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDocumented$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\"}]}"); // old
                "{\"type\":\"record\",\"name\":\"Record\",\"namespace\":\"jobs.AvroDocumented$\",\"fields\":[{\"name\":\"value\",\"type\":\"int\",\"doc\":\"a value\"}]}"); // new

        @Override
        public Schema getSchema() {
            return SCHEMA$;
        }
    }

    public DataStream<?> build(DataStream<String> lines) {
        return keyed(lines).flatMap(new Store<>(Record.class)).uid("store");
    }
}
