package harness;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.BitSet;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.typeutils.TypeExtractor;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.core.memory.DataOutputViewStreamWrapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Prints for each class whether its value is written and read by Kryo, as Flink makes it in this JVM. */
public final class KryoValues {
    /** A class of a job that is no POJO. */
    public static final class Own {
        private final int number;

        private Own(int number) {
            this.number = number;
        }
    }

    public static void main(String[] args) {
        for (Object value : new Object[] {new Own(1), new UUID(1, 2), new BitSet(), new AtomicLong(3)}) {
            System.out.println(value.getClass().getSimpleName() + " " + outcome(value));
        }
    }

    @SuppressWarnings("unchecked")
    private static String outcome(Object value) {
        try {
            var config = StreamExecutionEnvironment.getExecutionEnvironment().getConfig().getSerializerConfig();
            var serializer = (TypeSerializer<Object>) TypeExtractor.createTypeInfo(value.getClass()).createSerializer(config);
            var out = new ByteArrayOutputStream();
            serializer.serialize(value, new DataOutputViewStreamWrapper(out));
            serializer.deserialize(new DataInputViewStreamWrapper(new ByteArrayInputStream(out.toByteArray())));
            return "works";
        } catch (Throwable e) {
            Throwable cause = e;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return cause.getClass().getSimpleName();
        }
    }
}
