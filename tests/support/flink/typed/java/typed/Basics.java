package typed;

import java.io.File;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.net.InetAddress;
import java.net.URI;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.charset.Charset;
import java.nio.file.Path;
import java.time.DayOfWeek;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.BitSet;
import java.util.Calendar;
import java.util.Currency;
import java.util.Date;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.GregorianCalendar;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Random;
import java.util.StringJoiner;
import java.util.TimeZone;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Pattern;

/** Fields of primitive types, of the JDK's classes, and arrays of both. */
public class Basics {
    public enum Color { RED, GREEN }

    public enum Bodied { PLUS { @Override int sign() { return 1; } }, MINUS { @Override int sign() { return -1; } }; abstract int sign(); }

    public static class Primitives {
        public boolean flag; public byte octet; public short small; public char letter; public int number; public long big;
        public float single; public double real;
        public Boolean boxedFlag; public Byte boxedOctet; public Short boxedSmall; public Character boxedLetter; public Integer boxedNumber;
        public Long boxedBig; public Float boxedSingle; public Double boxedReal; public Void nothing; public String text;
        public Number anyNumber; public CharSequence anyText; public Comparable<String> comparable; public Object object;
        public Serializable serializable; public Cloneable cloneable; public Throwable throwable; public Exception exception;
        public RuntimeException runtime; public Class<?> type; public Class<String> typeOfText; public StringBuilder builder;
        public StringBuffer buffer; public Thread.State state; public Runnable runnable; public Iterable<String> iterable;
    }

    public static class Times {
        public Date date; public java.sql.Date sqlDate; public java.sql.Time sqlTime; public java.sql.Timestamp sqlTimestamp;
        public Instant instant; public LocalDate localDate; public LocalTime localTime; public LocalDateTime localDateTime;
        public ZonedDateTime zoned; public OffsetDateTime offset; public Duration duration; public Period period; public Year year;
        public YearMonth yearMonth; public MonthDay monthDay; public ZoneId zone; public ZoneOffset zoneOffset; public DayOfWeek day;
        public Calendar calendar; public GregorianCalendar gregorian; public TimeZone timeZone; public TimeUnit unit;
    }

    public static class Others {
        public BigDecimal decimal; public BigInteger integer; public MathContext context; public UUID uuid; public URI uri; public URL url;
        public Locale locale; public Currency currency; public BitSet bits; public File file; public Path path; public InetAddress address;
        public ByteBuffer bytes; public Charset charset; public Pattern pattern; public Properties properties; public Random random;
        public Optional<String> optional; public OptionalInt optionalInt; public OptionalLong optionalLong; public AtomicInteger atomicInt;
        public AtomicLong atomicLong; public AtomicBoolean atomicFlag; public AtomicReference<String> reference; public LongAdder adder;
        public EnumSet<Color> colors; public EnumMap<Color, String> byColor; public StringJoiner joiner; public Color color;
        public Bodied bodied; public java.awt.Point point; public java.awt.Dimension dimension;
        public java.util.Map.Entry<String, Integer> entry; public java.util.AbstractMap.SimpleEntry<String, Integer> simpleEntry;
        public javax.management.ObjectName objectName; public java.util.function.Function<String, String> function;
    }

    public static class Arrays {
        public boolean[] flags; public byte[] octets; public short[] smalls; public char[] letters; public int[] numbers; public long[] bigs;
        public float[] singles; public double[] reals; public Boolean[] boxedFlags; public Byte[] boxedOctets; public Short[] boxedSmalls;
        public Character[] boxedLetters; public Integer[] boxedNumbers; public Long[] boxedBigs; public Float[] boxedSingles;
        public Double[] boxedReals; public String[] texts; public Void[] nothings; public BigDecimal[] decimals; public BigInteger[] integers;
        public Date[] dates; public java.sql.Timestamp[] timestamps; public Instant[] instants; public LocalDate[] localDates;
        public ZonedDateTime[] zoned; public Object[] objects; public Serializable[] serializables; public Number[] anyNumbers;
        public Class<?>[] types; public UUID[] uuids; public Color[] colors; public Bodied[] bodied; public Shapes.Item[] items;
        public Shapes.Hidden[] hidden; public int[][] grid; public String[][] table; public Integer[][] boxedGrid; public Shapes.Item[][] board;
        public Object[][] objectGrid; public byte[][][] cube; public Color[][] colorGrid;
    }

    /** Flink fails. */
    public static class AnyEnum { public Enum<?> any; }
}
