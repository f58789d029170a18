import java.util.*;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.java.typeutils.runtime.kryo.KryoSerializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import scala.*;
import scala.collection.immutable.*;
/** Writes Scala values with the KryoSerializer of Flink 1.20.3 and flink-scala_2.12; the output is {@code values-scala-1.20.3.tsv}. */
public class KryoScala {
  static String hex(byte[] raw){StringBuilder t=new StringBuilder();for(byte b:raw)t.append(String.format("%02x",b));return t.toString();}
  static <T> scala.collection.immutable.List<T> list(T... a){ scala.collection.immutable.List<T> l=(scala.collection.immutable.List<T>)(Object)Nil$.MODULE$; for(int i=a.length-1;i>=0;i--) l=new $colon$colon<T>(a[i],l); return l; }
  public static void main(String[] args) throws Exception {
    java.util.Map<String,Object> v=new java.util.LinkedHashMap<>();
    v.put("some",new Some<>("x")); v.put("none",None$.MODULE$); v.put("left",new scala.util.Left<>(1)); v.put("right",new scala.util.Right<>("r"));
    v.put("nil",Nil$.MODULE$); v.put("list",list("a",1)); v.put("tuple1",new Tuple1<>("a")); v.put("tuple2",new Tuple2<>("a",1)); v.put("tuple3",new Tuple3<>("a",1,null));
    v.put("tuple2-ints",new scala.Tuple2$mcII$sp(1,-2)); v.put("tuple2-long-double",new scala.Tuple2$mcJD$sp(1L<<40,1.5)); v.put("tuple1-long",new scala.Tuple1$mcJ$sp(-3L));
    v.put("vector",scala.collection.JavaConverters.asScalaBufferConverter(java.util.List.of(1,2)).asScala().toVector());
    v.put("buffer",scala.collection.JavaConverters.asScalaBufferConverter(new ArrayList<>(java.util.List.of(1,2))).asScala());
    v.put("set",scala.collection.JavaConverters.asScalaSetConverter(java.util.Set.of("a")).asScala().toSet());
    v.put("array-buffer",new scala.collection.mutable.ArrayBuffer<Object>().$plus$eq("q")); v.put("list-buffer",new scala.collection.mutable.ListBuffer<Object>().$plus$eq("q"));
    scala.collection.mutable.HashMap<Object,Object> mm=new scala.collection.mutable.HashMap<>(); mm.put("k",1); v.put("mutable-map",mm);
    v.put("map",scala.collection.immutable.Map$.MODULE$.empty().$plus(new Tuple2<>("k",1))); v.put("map-empty",scala.collection.immutable.Map$.MODULE$.empty()); v.put("set-empty",scala.collection.immutable.Set$.MODULE$.empty());
    v.put("symbol",scala.Symbol.apply("sy")); v.put("unit",scala.runtime.BoxedUnit.UNIT); v.put("queue",scala.collection.immutable.Queue$.MODULE$.empty().enqueue("z"));
    v.put("tree-map",scala.collection.immutable.TreeMap$.MODULE$.empty(scala.math.Ordering.String$.MODULE$).$plus(new Tuple2<>("k",1)));
    v.put("big-int",scala.math.BigInt.apply(7));
    v.put("success",new scala.util.Success<>("ok")); v.put("failure",new scala.util.Failure<>(new IllegalStateException("no"))); v.put("bitset",scala.collection.immutable.BitSet$.MODULE$.empty().$plus(3));
    KryoSerializer<Object> s=new KryoSerializer<>(Object.class,new SerializerConfigImpl()); DataOutputSerializer out=new DataOutputSerializer(64);
    TypeSerializerSnapshot.writeVersionedSnapshot(out,s.snapshotConfiguration()); System.out.println("snapshot\t"+hex(out.getCopyOfBuffer()));
    for(java.util.Map.Entry<String,Object> e:v.entrySet()){ out.clear(); try{ s.serialize(e.getValue(),out);}catch(Throwable t){System.err.println(e.getKey()+": "+t); s=new KryoSerializer<>(Object.class,new SerializerConfigImpl()); continue;} System.out.println(e.getKey()+"\t"+hex(out.getCopyOfBuffer())+"\t"+e.getValue().getClass().getName()); }
  }
}
