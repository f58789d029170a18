package statetool.avro;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/** Prints the hash codes of records 0 to 19 as the Avro on the class path computes them; needs nothing else (Avro 1.8 to 1.12). */
public final class Hashes {
    static final String SCHEMA = "{'type':'record','name':'Many','namespace':'statetool.cases','fields':["
            + "{'name':'inner','type':{'type':'record','name':'In','fields':[{'name':'a','type':'string'},{'name':'b','type':'double'}]}},"
            + "{'name':'text','type':'string'},{'name':'skipped','type':'int','order':'ignore'},{'name':'flag','type':'boolean'},"
            + "{'name':'list','type':{'type':'array','items':'string'}},{'name':'raw','type':'bytes'},"
            + "{'name':'fixed','type':{'type':'fixed','name':'F','size':2}},{'name':'maybe','type':['null','float']},"
            + "{'name':'either','type':['int','string','In']},{'name':'kind','type':{'type':'enum','name':'E','symbols':['X','Y']}},"
            + "{'name':'number','type':'long'},{'name':'last','type':'string'}]}";

    private Hashes() {}

    public static void main(String[] args) {
        Schema schema = new Schema.Parser().parse(SCHEMA.replace('\'', '"'));
        Schema inner = schema.getField("inner").schema();
        List<Integer> found = new ArrayList<>();
        for (int n = 0; n < 20; n++) {
            GenericRecord in = new GenericData.Record(inner);
            in.put("a", "in \u00e9 " + n);
            in.put("b", n / 8.0);
            GenericRecord r = new GenericData.Record(schema);
            r.put("inner", in);
            r.put("text", "a rather long text " + n);
            r.put("skipped", n);
            r.put("flag", n % 2 == 0);
            r.put("list", n % 3 == 0 ? new ArrayList<String>() : Arrays.asList("x" + n, ""));
            r.put("raw", ByteBuffer.wrap(new byte[] {(byte) n, -1, 3}));
            r.put("fixed", new GenericData.Fixed(schema.getField("fixed").schema(), new byte[] {-5, (byte) n}));
            r.put("maybe", n % 4 == 0 ? null : (Object) (n / 2f));
            r.put("either", n % 3 == 0 ? (Object) n : n % 3 == 1 ? "t" + n : in);
            r.put("kind", new GenericData.EnumSymbol(schema.getField("kind").schema(), n % 2 == 0 ? "X" : "Y"));
            r.put("number", 1L << n);
            r.put("last", "end " + n);
            found.add(r.hashCode());
        }
        System.out.println(found);
    }
}
