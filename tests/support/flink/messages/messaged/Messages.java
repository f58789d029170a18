package messaged;

import com.google.protobuf.Api;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.Method;
import com.google.protobuf.SourceContext;
import com.google.protobuf.Timestamp;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hive.service.rpc.thrift.TColumnDesc;
import org.apache.hive.service.rpc.thrift.TPrimitiveTypeEntry;
import org.apache.hive.service.rpc.thrift.TTableSchema;
import org.apache.hive.service.rpc.thrift.TTypeDesc;
import org.apache.hive.service.rpc.thrift.TTypeEntry;
import org.apache.hive.service.rpc.thrift.TTypeId;
import org.apache.hive.service.rpc.thrift.TTypeQualifierValue;
import org.apache.hive.service.rpc.thrift.TTypeQualifiers;

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
        out.put("Schema", schema());
        return out;
    }

    /** A struct of Hive, whose classes Thrift's compiler generated: lists, structs, unions, enums and maps in one another. */
    private static TTableSchema schema() {
        TPrimitiveTypeEntry entry = new TPrimitiveTypeEntry(TTypeId.VARCHAR_TYPE);
        TTypeQualifierValue length = TTypeQualifierValue.i32Value(9);
        entry.setTypeQualifiers(new TTypeQualifiers(Collections.singletonMap("characterMaximumLength", length)));
        TTypeDesc type = new TTypeDesc(List.of(TTypeEntry.primitiveEntry(entry)));
        return new TTableSchema(List.of(new TColumnDesc("name", type, 1)));
    }
}
