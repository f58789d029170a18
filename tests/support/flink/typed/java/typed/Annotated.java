package typed;

import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.TypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInfoFactory;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;

/** Types that the job gives by {@code @TypeInfo}. */
public class Annotated {
    public static class ListFactory extends TypeInfoFactory<List<String>> {
        @Override public TypeInformation<List<String>> createTypeInfo(Type t, Map<String, TypeInformation<?>> parameters) { return Types.LIST(Types.STRING); }
    }

    public static class MoneyFactory extends TypeInfoFactory<Money> {
        @Override public TypeInformation<Money> createTypeInfo(Type t, Map<String, TypeInformation<?>> parameters) {
            return Types.POJO(Money.class, Map.of("cents", Types.LONG, "names", Types.LIST(Types.STRING)));
        }
    }

    public static class BoxFactory extends TypeInfoFactory<Object> {
        @Override public TypeInformation<Object> createTypeInfo(Type t, Map<String, TypeInformation<?>> parameters) { return Types.GENERIC(Object.class); }
    }

    @TypeInfo(MoneyFactory.class)
    public static class Money { public long cents; public List<String> names; }

    /** The annotation of a superclass counts. */
    public static class Euro extends Money { public int n; }

    @TypeInfo(BoxFactory.class)
    public interface Marked { }

    /** That of an interface does not. */
    public static class Marks implements Marked { public int n; }

    public static class Holder {
        @TypeInfo(ListFactory.class) public List<String> names; public Money money; public Euro euro; public Marks marks; public Marked marked;
        public List<Money> moneys; public Money[] array; public Tuple2<Money, String> tuple; public Generics.Box<Money> box; public List<String> plain;
        @TypeInfo(ListFactory.class) private List<String> hidden;
        public List<String> getHidden() { return hidden; } public void setHidden(List<String> v) { hidden = v; }
    }
}
