package statetool.avro;

import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversion;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.specific.SpecificData;
import org.apache.avro.specific.SpecificRecordBase;

/** A specific record as Avro's compiler makes them: with conversions of logical types. */
public class Payment extends SpecificRecordBase {
    public static final Schema SCHEMA$ = new Schema.Parser().parse(("{'type':'record','name':'Payment','namespace':'statetool.avro','fields':["
            + "{'name':'id','type':{'type':'string','avro.java.string':'String'}},"
            + "{'name':'at','type':{'type':'long','logicalType':'timestamp-millis'}},"
            + "{'name':'exact','type':{'type':'long','logicalType':'timestamp-micros'}},"
            + "{'name':'day','type':{'type':'int','logicalType':'date'}},"
            + "{'name':'clock','type':{'type':'int','logicalType':'time-millis'}},"
            + "{'name':'clock_exact','type':{'type':'long','logicalType':'time-micros'}},"
            + "{'name':'here','type':{'type':'long','logicalType':'local-timestamp-millis'}},"
            + "{'name':'amount','type':{'type':'bytes','logicalType':'decimal','precision':12,'scale':2}},"
            + "{'name':'kind','type':{'type':'enum','name':'Kind','symbols':['CARD','CASH','GIFT'],'default':'CARD'}},"
            + "{'name':'paid','type':['null',{'type':'long','logicalType':'timestamp-millis'}],'default':null},"
            + "{'name':'lines','type':{'type':'array','items':{'type':'record','name':'Line','fields':["
            + "{'name':'sku','type':{'type':'string','avro.java.string':'String'}},{'name':'count','type':'int'}]}}},"
            + "{'name':'tags','type':{'type':'map','values':'long','avro.java.string':'String'}}]}").replace('\'', '"'));
    public static final SpecificData MODEL$ = new SpecificData();
    private static final Conversion<?>[] CONVERSIONS = {
        null, new TimeConversions.TimestampMillisConversion(), new TimeConversions.TimestampMicrosConversion(),
        new TimeConversions.DateConversion(), new TimeConversions.TimeMillisConversion(), new TimeConversions.TimeMicrosConversion(),
        new TimeConversions.LocalTimestampMillisConversion(), new Conversions.DecimalConversion(), null, null, null, null,
    };

    static {
        for (Conversion<?> conversion : CONVERSIONS) {
            if (conversion != null) {
                MODEL$.addLogicalTypeConversion(conversion);
            }
        }
    }

    public String id;
    public Instant at;
    public Instant exact;
    public LocalDate day;
    public LocalTime clock;
    public LocalTime clockExact;
    public LocalDateTime here;
    public BigDecimal amount;
    public Kind kind;
    public Instant paid;
    public List<Line> lines;
    public Map<String, Long> tags;

    @Override
    public Schema getSchema() {
        return SCHEMA$;
    }

    @Override
    public SpecificData getSpecificData() {
        return MODEL$;
    }

    @Override
    public Conversion<?> getConversion(int field) {
        return CONVERSIONS[field];
    }

    @Override
    public Object get(int field) {
        return new Object[] {id, at, exact, day, clock, clockExact, here, amount, kind, paid, lines, tags}[field];
    }

    @Override
    @SuppressWarnings("unchecked")
    public void put(int field, Object value) {
        switch (field) {
            case 0: id = value.toString(); break;
            case 1: at = (Instant) value; break;
            case 2: exact = (Instant) value; break;
            case 3: day = (LocalDate) value; break;
            case 4: clock = (LocalTime) value; break;
            case 5: clockExact = (LocalTime) value; break;
            case 6: here = (LocalDateTime) value; break;
            case 7: amount = (BigDecimal) value; break;
            case 8: kind = (Kind) value; break;
            case 9: paid = (Instant) value; break;
            case 10: lines = (List<Line>) value; break;
            default: tags = (Map<String, Long>) value;
        }
    }
}
