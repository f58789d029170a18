package messaged;

import com.google.protobuf.Api;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.Method;
import com.google.protobuf.SourceContext;
import com.google.protobuf.Timestamp;
import java.util.HashMap;
import java.util.Map;

/** Messages of classes that the compilers of Protobuf and Thrift generate. */
public final class Messages {
    private Messages() {}

    public static Map<String, Object> all() {
        Map<String, Object> out = new HashMap<>();
        out.put("Timestamp", Timestamp.newBuilder().setSeconds(5).setNanos(7).build());
        out.put("Api", Api.newBuilder().setName("shop").addMethods(Method.newBuilder().setName("buy").setRequestStreaming(true))
                .setSourceContext(SourceContext.newBuilder().setFileName("a.proto")).build());
        out.put("Descriptor", DescriptorProto.newBuilder().setName("Order")
                .addField(FieldDescriptorProto.newBuilder().setName("id").setNumber(3)).build());
        out.put("Parcel", new Parcel(1L << 40, "me", "a", "b"));
        return out;
    }
}
