import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Prints what Flink's {@code S3RecoverableSerializer} writes of an upload in progress and of a complete one.
 *
 * <p>{@code java -cp flink-s3-fs-hadoop-2.2.0.jar:flink-dist-2.3.0.jar S3Recoverables.java}
 */
public final class S3Recoverables {
    public static void main(String[] args) throws Exception {
        String writer = "org.apache.flink.fs.s3.common.writer.";
        Class<?> type = Class.forName(writer + "S3Recoverable");
        Class<?> etag = Class.forName("com.amazonaws.services.s3.model.PartETag");
        Constructor<?> make = null;
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            if (constructor.getParameterCount() == 6) {
                make = constructor;
            }
        }
        make.setAccessible(true);
        Class<?> of = Class.forName(writer + "S3RecoverableSerializer");
        Field instance = of.getDeclaredField("INSTANCE");
        instance.setAccessible(true);
        Method serialize = of.getDeclaredMethod("serialize", type);
        serialize.setAccessible(true);
        List<Object> parts = new ArrayList<>();
        parts.add(etag.getConstructor(int.class, String.class).newInstance(1, "0cc175b9c0f1b6a8"));
        parts.add(etag.getConstructor(int.class, String.class).newInstance(2, "92eb5ffee6ae2fec"));
        Object open = make.newInstance(
                "table/day=1/part-0-7", "VXBsb2FkIElE", parts, 10_485_760L, "table/day=1/_part-0-7_tmp_5f0c", 321L);
        Object closed = make.newInstance("table/day=1/part-0-6", "VXBsb2FkIElF", parts, 10_485_999L, null, -1L);
        for (Object upload : new Object[] {open, closed}) {
            System.out.println(HexFormat.of().formatHex((byte[]) serialize.invoke(instance.get(null), upload)));
        }
    }
}
