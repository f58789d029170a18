package typed;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Classes of which Flink makes POJOs, or not. */
public class Shapes {
    public static class Item { public int n; public String name; }

    public static class Hidden { int n; }

    public static class Outer { public Item item; public Middle middle; public Hidden hidden; }

    public static class Middle { public Item[] items; public Outer back; public Middle itself; }

    public static class Linked { public int n; public Linked next; public Linked[] all; }

    /** Flink 2.x never ends: elements of a list are extracted without what encloses them. */
    public static class Endless { public int n; public List<Endless> list; }

    public static class Ping { public Pong pong; }

    public static class Pong { public Ping ping; public Pong[] pongs; }

    public static class Properties {
        private int plain; private String aText; private boolean isActive; private boolean open; private long some_number; private int URL;
        private Integer boxed; private int unboxed; private List<String> list;
        public int getPlain() { return plain; } public void setPlain(int v) { plain = v; }
        public String getAText() { return aText; } public void setAText(String v) { aText = v; }
        public boolean isIsActive() { return isActive; } public void setIsActive(boolean v) { isActive = v; }
        public boolean isOpen() { return open; } public Properties setOpen(boolean v) { open = v; return this; }
        public long getSomeNumber() { return some_number; } public void setSomeNumber(long v) { some_number = v; }
        public int getUrl() { return URL; } public void setUrl(int v) { URL = v; }
        public int getBoxed() { return boxed; } public Integer getboxed() { return boxed; } public void setBoxed(Integer v) { boxed = v; }
        public Integer getUnboxed() { return unboxed; } public void setUnboxed(Integer v) { unboxed = v; }
        public List<String> getList() { return list; } public void setList(List<String> v) { list = v; }
    }

    /** The JavaBeans form of a boolean {@code isActive}: Flink 2.x takes it, Flink 1.x does not. */
    public static class IsSetter {
        private boolean isActive;
        public boolean isActive() { return isActive; } public void setActive(boolean v) { isActive = v; }
    }

    /** The getter returns the primitive of a boxed field. */
    public static class Unboxing {
        private Integer n;
        public int getN() { return n; } public void setN(Integer v) { n = v; }
    }

    /** The setter takes the primitive of a boxed field. */
    public static class UnboxingSetter {
        private Integer n;
        public Integer getN() { return n; } public void setN(int v) { n = v; }
    }

    /** Getter and setter have other type arguments. */
    public static class OtherArguments {
        private List<String> list;
        public List<? extends CharSequence> getList() { return list; } public void setList(List<String> v) { list = v; }
    }

    public static class RawGetter {
        private List<String> list;
        @SuppressWarnings("rawtypes") public List getList() { return list; } public void setList(List<String> v) { list = v; }
    }

    public static class Wider {
        private ArrayList<String> list;
        public List<String> getList() { return list; } public void setList(ArrayList<String> v) { list = v; }
    }

    public static class NoGetter { private int n; public void setN(int v) { n = v; } }

    public static class NoSetter { private int n; public int getN() { return n; } }

    public static class FinalField { public final int n = Integer.getInteger("n", 3); public String s; }

    public static class ProtectedAccess { private int n; int getN() { return n; } void setN(int v) { n = v; } }

    public static class StaticAccess { private int n; public static int getN() { return 1; } public static void setN(int v) { } }

    public static class FluentSetter { private int n; public int getN() { return n; } public Object setN(int v) { n = v; return this; } }

    public static class NoConstructor { public int n; public NoConstructor(int n) { this.n = n; } }

    public static class PrivateConstructor { public int n; private PrivateConstructor() { } }

    public static class ProtectedConstructor { public int n; protected ProtectedConstructor() { } }

    public static class Empty { }

    public static class OnlyStatic { public static int n; public transient int t; }

    public static class PartlyTransient { public int n; public transient int t; public static int s; public volatile int v; }

    public class Inner { public int n; }

    static class PackagePrivate { public int n; }

    protected static class ProtectedClass { public int n; public ProtectedClass() { } }

    private static class PrivateClass { public int n; public PrivateClass() { } }

    public static class WithReadObject {
        public int n;
        private void readObject(java.io.ObjectInputStream in) { }
    }

    public static class NamedWriteObject { public int n; public void writeObject(int other) { } }

    public static class BelowReadObject extends WithReadObject { public int m; }

    public static class Base { public int n; private String hidden; public String getHidden() { return hidden; } public void setHidden(String v) { hidden = v; } }

    public static class Child extends Base { public long m; }

    public static class Shadowing extends Base { public int n; }

    public abstract static class Abstract { public int n; }

    public abstract static class AbstractNoConstructor { public int n; public AbstractNoConstructor(int n) { } }

    public static class Concrete extends AbstractNoConstructor { public Concrete() { super(1); } }

    public interface Face { int getN(); }

    public interface Defaults { default int getN() { return 1; } default void setN(int v) { } }

    /** Accessors come from the interface. */
    public static class FromInterface implements Defaults { private int n; }

    public static class BelowPrivate extends ParentWithPrivate { public int m; }

    static class ParentWithPrivate { private int n; public int getN() { return n; } public void setN(int v) { n = v; } }

    public static final class Final { public int n; }

    public static class Failure extends Exception { public int code; }

    public static class Names extends ArrayList<String> { public int n; }

    public static class OnlyNames extends ArrayList<String> { }

    public static class Index extends HashMap<String, Integer> { public int n; }

    public static class OwnList extends java.util.AbstractList<String> {
        public int n;
        @Override public String get(int i) { return ""; } @Override public int size() { return 0; }
    }

    public static class Amount extends Number {
        public int n;
        @Override public int intValue() { return n; } @Override public long longValue() { return n; }
        @Override public float floatValue() { return n; } @Override public double doubleValue() { return n; }
    }

    public static class Comparing implements Comparable<Comparing>, Serializable { public int n; @Override public int compareTo(Comparing o) { return 0; } }

    public static class Task extends Thread { public int n; }

    public record Point(int x, Integer y) { }

    public record Nested(Point point, List<String> names, Map<String, Point> points, Item[] items, Object any) { }

    record HiddenRecord(int x) { }

    public record EmptyRecord() { }

    public record Boxed<T>(T value, List<T> values) { }

    public static class Holder {
        public Item item; public Hidden hidden; public Outer outer; public Linked linked; public Ping ping; public Properties properties;
        public IsSetter isSetter; public Unboxing unboxing; public UnboxingSetter unboxingSetter; public OtherArguments otherArguments;
        public RawGetter rawGetter; public Wider wider; public NoGetter noGetter; public NoSetter noSetter; public FinalField finalField;
        public ProtectedAccess protectedAccess; public StaticAccess staticAccess; public FluentSetter fluentSetter;
        public NoConstructor noConstructor; public PrivateConstructor privateConstructor; public ProtectedConstructor protectedConstructor;
        public Empty empty; public OnlyStatic onlyStatic; public PartlyTransient partlyTransient; public Inner inner;
        public PackagePrivate packagePrivate; public ProtectedClass protectedClass; public PrivateClass privateClass;
        public WithReadObject withReadObject; public NamedWriteObject namedWriteObject; public BelowReadObject belowReadObject;
        public Base base; public Child child; public Shadowing shadowing; public Abstract anAbstract; public AbstractNoConstructor abstractNo;
        public Concrete concrete; public Face face; public Defaults defaults; public FromInterface fromInterface; public BelowPrivate belowPrivate;
        public Final aFinal; public Failure failure; public Names names; public OnlyNames onlyNames; public Index index; public OwnList ownList;
        public Amount amount; public Comparing comparing; public Task task; public Point point; public Nested nested; public HiddenRecord hiddenRecord;
        public EmptyRecord emptyRecord; public Boxed<String> boxedText; public Boxed<?> boxedAny; @SuppressWarnings("rawtypes") public Boxed boxedRaw;
    }
}
