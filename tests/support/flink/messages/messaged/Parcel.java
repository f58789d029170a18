package messaged;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.TFieldIdEnum;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TList;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TSet;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;

/** A Thrift struct with the constants that its compiler generates. */
public class Parcel implements TBase<Parcel, Parcel.Fields> {
    private static final TStruct STRUCT_DESC = new TStruct("Parcel");
    private static final TField ID_FIELD_DESC = new TField("id", TType.I64, (short) 1);
    private static final TField OWNER_FIELD_DESC = new TField("owner", TType.STRING, (short) 2);
    private static final TField TAGS_FIELD_DESC = new TField("tags", TType.LIST, (short) 4);
    private static final TField PARTS_FIELD_DESC = new TField("parts", TType.MAP, (short) 20);
    private static final TField KINDS_FIELD_DESC = new TField("kinds", TType.SET, (short) 300);
    private static final TField ODD_FIELD_DESC = new TField("odd", TType.I32, (short) -1);

    public long id;
    public String owner;
    public List<String> tags = new ArrayList<>();
    public Map<Integer, List<Part>> parts = new TreeMap<>();
    public Set<Kind> kinds = EnumSet.noneOf(Kind.class);
    public Kind odd = Kind.SMALL;

    public Parcel() {}

    public Parcel(long id, String owner, String... tags) {
        this.id = id;
        this.owner = owner;
        this.tags.addAll(List.of(tags));
        parts.put(7, List.of(new Part("a", Kind.LARGE, new Part("inside", Kind.SMALL, null)), new Part("b", Kind.SMALL, null)));
        kinds.add(Kind.LARGE);
    }

    public enum Fields implements TFieldIdEnum {
        ID((short) 1, "id"), OWNER((short) 2, "owner"), TAGS((short) 4, "tags"), PARTS((short) 20, "parts"),
        KINDS((short) 300, "kinds"), ODD((short) -1, "odd");

        private final short number;
        private final String label;

        Fields(short number, String label) {
            this.number = number;
            this.label = label;
        }

        @Override public short getThriftFieldId() { return number; }

        @Override public String getFieldName() { return label; }
    }

    @Override public void write(TProtocol out) throws TException {
        out.writeStructBegin(STRUCT_DESC);
        out.writeFieldBegin(ID_FIELD_DESC);
        out.writeI64(id);
        out.writeFieldEnd();
        out.writeFieldBegin(OWNER_FIELD_DESC);
        out.writeString(owner);
        out.writeFieldEnd();
        out.writeFieldBegin(TAGS_FIELD_DESC);
        out.writeListBegin(new TList(TType.STRING, tags.size()));
        for (String tag : tags) out.writeString(tag);
        out.writeListEnd();
        out.writeFieldEnd();
        out.writeFieldBegin(PARTS_FIELD_DESC);
        out.writeMapBegin(new TMap(TType.I32, TType.LIST, parts.size()));
        for (Map.Entry<Integer, List<Part>> entry : parts.entrySet()) {
            out.writeI32(entry.getKey());
            out.writeListBegin(new TList(TType.STRUCT, entry.getValue().size()));
            for (Part part : entry.getValue()) part.write(out);
            out.writeListEnd();
        }
        out.writeMapEnd();
        out.writeFieldEnd();
        out.writeFieldBegin(KINDS_FIELD_DESC);
        out.writeSetBegin(new TSet(TType.I32, kinds.size()));
        for (Kind kind : kinds) out.writeI32(kind.getValue());
        out.writeSetEnd();
        out.writeFieldEnd();
        out.writeFieldBegin(ODD_FIELD_DESC);
        out.writeI32(odd.getValue());
        out.writeFieldEnd();
        out.writeFieldStop();
        out.writeStructEnd();
    }

    @Override public void read(TProtocol in) { throw new UnsupportedOperationException(); }

    @Override public Fields fieldForId(int id) { return null; }

    @Override public boolean isSet(Fields field) { return true; }

    @Override public Object getFieldValue(Fields field) { return null; }

    @Override public void setFieldValue(Fields field, Object value) {}

    @Override public Parcel deepCopy() { return new Parcel(id, owner, tags.toArray(new String[0])); }

    @Override public void clear() {}

    @Override public int compareTo(Parcel other) { return Long.compare(id, other.id); }
}
