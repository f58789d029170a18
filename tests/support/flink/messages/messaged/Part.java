package messaged;

import org.apache.thrift.TBase;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;

/** A Thrift struct that contains itself, with the constants that its compiler generates. */
public class Part implements TBase<Part, Parcel.Fields> {
    private static final TStruct STRUCT_DESC = new TStruct("Part");
    private static final TField NAME_FIELD_DESC = new TField("name", TType.STRING, (short) 1);
    private static final TField KIND_FIELD_DESC = new TField("kind", TType.I32, (short) 2);
    private static final TField INSIDE_FIELD_DESC = new TField("inside", TType.STRUCT, (short) 3);

    private String name;
    private Kind kind;
    private Part inside;

    public Part(String name, Kind kind, Part inside) {
        this.name = name;
        this.kind = kind;
        this.inside = inside;
    }

    @Override public void write(TProtocol out) throws TException {
        out.writeStructBegin(STRUCT_DESC);
        out.writeFieldBegin(NAME_FIELD_DESC);
        out.writeString(name);
        out.writeFieldEnd();
        out.writeFieldBegin(KIND_FIELD_DESC);
        out.writeI32(kind.getValue());
        out.writeFieldEnd();
        if (inside != null) {
            out.writeFieldBegin(INSIDE_FIELD_DESC);
            inside.write(out);
            out.writeFieldEnd();
        }
        out.writeFieldStop();
        out.writeStructEnd();
    }

    @Override public void read(TProtocol in) { throw new UnsupportedOperationException(); }

    @Override public Parcel.Fields fieldForId(int id) { return null; }

    @Override public boolean isSet(Parcel.Fields field) { return true; }

    @Override public Object getFieldValue(Parcel.Fields field) { return null; }

    @Override public void setFieldValue(Parcel.Fields field, Object value) {}

    @Override public Part deepCopy() { return new Part(name, kind, inside); }

    @Override public void clear() {}

    @Override public int compareTo(Part other) { return name.compareTo(other.name); }
}
