package ran;

import java.io.IOException;

import org.apache.flink.api.common.typeutils.SimpleTypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton;
import org.apache.flink.core.memory.DataInputView;
import org.apache.flink.core.memory.DataOutputView;

/** Classes of the old job, about which only running them tells. */
public final class Ran {
    /** A serializer of the job's own for a number. */
    abstract static class NumberSerializer<T> extends TypeSerializerSingleton<T> {
        abstract T of(long number);

        abstract long number(T value);

        @Override public boolean isImmutableType() { return true; }
        @Override public T createInstance() { return of(0); }
        @Override public T copy(T from) { return from; }
        @Override public T copy(T from, T reuse) { return from; }
        @Override public int getLength() { return 8; }
        @Override public void serialize(T value, DataOutputView out) throws IOException { out.writeLong(number(value)); }
        @Override public T deserialize(DataInputView in) throws IOException { return of(in.readLong()); }
        @Override public T deserialize(T reuse, DataInputView in) throws IOException { return deserialize(in); }
        @Override public void copy(DataInputView in, DataOutputView out) throws IOException { out.writeLong(in.readLong()); }
    }

    public static final class Same {
        public long n;
        public Same(long n) { this.n = n; }
    }

    public static final class SameSerializer extends NumberSerializer<Same> {
        @Override Same of(long n) { return new Same(n); }
        @Override long number(Same value) { return value.n; }
        @Override public TypeSerializerSnapshot<Same> snapshotConfiguration() { return new SameSnapshot(); }
    }

    public static final class SameSnapshot extends SimpleTypeSerializerSnapshot<Same> {
        public SameSnapshot() { super(SameSerializer::new); }
    }

    public static final class Halved {
        public long n;
        public Halved(long n) { this.n = n; }
    }

    public static final class HalvedSerializer extends NumberSerializer<Halved> {
        @Override Halved of(long n) { return new Halved(n); }
        @Override long number(Halved value) { return value.n; }
        @Override public TypeSerializerSnapshot<Halved> snapshotConfiguration() { return new HalvedSnapshot(); }
    }

    public static final class HalvedSnapshot extends SimpleTypeSerializerSnapshot<Halved> {
        public HalvedSnapshot() { super(HalvedSerializer::new); }
    }

    public static final class Doubled {
        public long n;
        public Doubled(long n) { this.n = n; }
    }

    public static final class DoubledSerializer extends NumberSerializer<Doubled> {
        @Override Doubled of(long n) { return new Doubled(n); }
        @Override long number(Doubled value) { return value.n; }
        @Override public TypeSerializerSnapshot<Doubled> snapshotConfiguration() { return new DoubledSnapshot(); }
    }

    public static final class DoubledSnapshot extends SimpleTypeSerializerSnapshot<Doubled> {
        public DoubledSnapshot() { super(DoubledSerializer::new); }
    }

    public static final class Refused {
        public long n;
        public Refused(long n) { this.n = n; }
    }

    public static final class RefusedSerializer extends NumberSerializer<Refused> {
        @Override Refused of(long n) { return new Refused(n); }
        @Override long number(Refused value) { return value.n; }
        @Override public TypeSerializerSnapshot<Refused> snapshotConfiguration() { return new RefusedSnapshot(); }
    }

    public static final class RefusedSnapshot extends SimpleTypeSerializerSnapshot<Refused> {
        public RefusedSnapshot() { super(RefusedSerializer::new); }
    }

    public static final class Gone {
        public long n;
        public Gone(long n) { this.n = n; }
    }

    public static final class GoneSerializer extends NumberSerializer<Gone> {
        @Override Gone of(long n) { return new Gone(n); }
        @Override long number(Gone value) { return value.n; }
        @Override public TypeSerializerSnapshot<Gone> snapshotConfiguration() { return new GoneSnapshot(); }
    }

    public static final class GoneSnapshot extends SimpleTypeSerializerSnapshot<Gone> {
        public GoneSnapshot() { super(GoneSerializer::new); }
    }

    public static final class Thrown {
        public long n;
        public Thrown(long n) { this.n = n; }
    }

    public static final class ThrownSerializer extends NumberSerializer<Thrown> {
        @Override Thrown of(long n) { return new Thrown(n); }
        @Override long number(Thrown value) { return value.n; }
        @Override public TypeSerializerSnapshot<Thrown> snapshotConfiguration() { return new ThrownSnapshot(); }
    }

    public static final class ThrownSnapshot extends SimpleTypeSerializerSnapshot<Thrown> {
        public ThrownSnapshot() { super(ThrownSerializer::new); }
    }

    public static final class Shifted {
        public long n;
        public Shifted(long n) { this.n = n; }
    }

    public static final class ShiftedSerializer extends NumberSerializer<Shifted> {
        @Override Shifted of(long n) { return new Shifted(n); }
        @Override long number(Shifted value) { return value.n; }
        @Override public TypeSerializerSnapshot<Shifted> snapshotConfiguration() { return new ShiftedSnapshot(); }
    }

    public static final class ShiftedSnapshot extends SimpleTypeSerializerSnapshot<Shifted> {
        public ShiftedSnapshot() { super(ShiftedSerializer::new); }
    }

    public static final class Exits {
        public long n;
        public Exits(long n) { this.n = n; }
    }

    public static final class ExitsSerializer extends NumberSerializer<Exits> {
        @Override Exits of(long n) { return new Exits(n); }
        @Override long number(Exits value) { return value.n; }
        @Override public TypeSerializerSnapshot<Exits> snapshotConfiguration() { return new ExitsSnapshot(); }
    }

    public static final class ExitsSnapshot extends SimpleTypeSerializerSnapshot<Exits> {
        public ExitsSnapshot() { super(ExitsSerializer::new); }
    }

    public static final class Prints {
        public long n;
        public Prints(long n) { this.n = n; }
    }

    public static final class PrintsSerializer extends NumberSerializer<Prints> {
        @Override Prints of(long n) { return new Prints(n); }
        @Override long number(Prints value) { return value.n; }
        @Override public TypeSerializerSnapshot<Prints> snapshotConfiguration() { return new PrintsSnapshot(); }
        @Override public Prints deserialize(DataInputView in) throws IOException { System.out.println("noise"); return super.deserialize(in); }
    }

    public static final class PrintsSnapshot extends SimpleTypeSerializerSnapshot<Prints> {
        public PrintsSnapshot() { super(PrintsSerializer::new); }
    }

    public static class PojoThrows {
        public int a;
        public PojoThrows() { }
    }

    public static class KryoThrows {
        public int a; Object other;
        public KryoThrows() { }
    }

    public static class KryoOwn implements com.esotericsoftware.kryo.KryoSerializable {
        int a;
        @Override public void write(com.esotericsoftware.kryo.Kryo kryo, com.esotericsoftware.kryo.io.Output out) { out.writeInt(a); }
        @Override public void read(com.esotericsoftware.kryo.Kryo kryo, com.esotericsoftware.kryo.io.Input in) { a = in.readInt(); }
    
    }

    public static class KryoOwnLonger implements com.esotericsoftware.kryo.KryoSerializable {
        int a;
        @Override public void write(com.esotericsoftware.kryo.Kryo kryo, com.esotericsoftware.kryo.io.Output out) { out.writeInt(a); }
        @Override public void read(com.esotericsoftware.kryo.Kryo kryo, com.esotericsoftware.kryo.io.Input in) { a = in.readInt(); }
    
    }

    public static class KeySame {
        public int a;
        public KeySame() { }

        @Override public int hashCode() {
            int h = 7;
            for (int i = 0; i < 5; i++) {
                h = h * 31 + a;
            }
            return h;
        }

        @Override public boolean equals(Object o) { return o instanceof KeySame && ((KeySame) o).a == a; }
    }

    public static class KeyMoved {
        public int a;
        public KeyMoved() { }

        @Override public int hashCode() {
            int h = 7;
            for (int i = 0; i < 5; i++) {
                h = h * 31 + a;
            }
            return h;
        }

        @Override public boolean equals(Object o) { return o instanceof KeyMoved && ((KeyMoved) o).a == a; }
    }

    public static class KeyWithoutEquals {
        public int a;
        public KeyWithoutEquals() { }
        @Override public int hashCode() { return a; }
        @Override public boolean equals(Object o) { return o instanceof KeyWithoutEquals && ((KeyWithoutEquals) o).a == a; }
    }
}
