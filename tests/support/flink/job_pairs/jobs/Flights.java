package jobs;

import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** Holds the first record until the gate opens. */
final class Hold<T> implements FlatMapFunction<T, String> {
    @Override
    public void flatMap(T value, Collector<String> out) throws Exception {
        Gate.pass();
        out.collect(String.valueOf(value));
    }
}

abstract class FlightJob<T> extends Job {
    abstract T parse(String line);

    abstract TypeInformation<T> type();

    static final class Parse<T> implements MapFunction<String, T> {
        private final Class<?> job;

        Parse(Class<?> job) {
            this.job = job;
        }

        @Override
        @SuppressWarnings("unchecked")
        public T map(String line) throws Exception {
            java.lang.reflect.Constructor<?> constructor = job.getDeclaredConstructor();
            constructor.setAccessible(true);
            return ((FlightJob<T>) constructor.newInstance()).parse(line);
        }
    }

    @Override
    public DataStream<?> build(DataStream<String> lines) {
        return lines.map(new Parse<T>(getClass())).returns(type()).uid("parse").rebalance()
                .flatMap(new Hold<T>()).returns(Types.STRING).uid("hold");
    }
}

final class FlightSame extends FlightJob<Tuple2<String, Integer>> {
    Tuple2<String, Integer> parse(String line) {
        return Tuple2.of(line.split(",")[0], number(line));
    }

    TypeInformation<Tuple2<String, Integer>> type() {
        return Types.TUPLE(Types.STRING, Types.INT);
    }
}

final class FlightFieldAdded extends FlightJob<FlightFieldAdded.Event> {
    public static class Event {
        public String key;
        public int number;
        public String note = "-"; // new

        @Override
        public String toString() {
            return key + "=" + number;
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        event.number = number(line);
        return event;
    }

    TypeInformation<Event> type() {
        return TypeInformation.of(Event.class);
    }
}

final class FlightFieldRemoved extends FlightJob<FlightFieldRemoved.Event> {
    public static class Event {
        public String key;
        public int number;
        public String note = "-"; // old

        @Override
        public String toString() {
            return key + "=" + number;
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        event.number = number(line);
        return event;
    }

    TypeInformation<Event> type() {
        return TypeInformation.of(Event.class);
    }
}

final class FlightFieldType extends FlightJob<FlightFieldType.Event> {
    public static class Event {
        public String key;
        public int number; // old
        public long number; // new

        @Override
        public String toString() {
            return key + "=" + number;
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        event.number = number(line);
        return event;
    }

    TypeInformation<Event> type() {
        return TypeInformation.of(Event.class);
    }
}

final class FlightFieldsSwapped extends FlightJob<FlightFieldsSwapped.Event> {
    public static class Event {
        public String alpha; // old
        public String beta; // old
        public String gamma; // new
        public String beta; // new

        @Override
        public String toString() {
            return alpha + "=" + beta; // old
            return gamma + "=" + beta; // new
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.alpha = line.split(",")[0]; // old
        event.gamma = line.split(",")[0]; // new
        event.beta = line.split(",")[1];
        return event;
    }

    TypeInformation<Event> type() {
        return TypeInformation.of(Event.class);
    }
}

final class FlightClassRenamed extends FlightJob<Object> {
    public static class Event { // old
    public static class Happening { // new
        public String key;

        @Override
        public String toString() {
            return key;
        }
    }

    Object parse(String line) {
        Event event = new Event(); // old
        Happening event = new Happening(); // new
        event.key = line.split(",")[0];
        return event;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    TypeInformation<Object> type() {
        return (TypeInformation) TypeInformation.of(Event.class); // old
        return (TypeInformation) TypeInformation.of(Happening.class); // new
    }
}

final class FlightKryoGrown extends FlightJob<FlightKryoGrown.Event> {
    public static class Event {
        String key;
        int number;
        String note = "-"; // new

        @Override
        public String toString() {
            return key + "=" + number;
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        event.number = number(line);
        return event;
    }

    TypeInformation<Event> type() {
        return new GenericTypeInfo<>(Event.class);
    }
}

final class FlightKryoToPojo extends FlightJob<FlightKryoToPojo.Event> {
    public static class Event {
        public String key;

        @Override
        public String toString() {
            return key;
        }
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        return event;
    }

    TypeInformation<Event> type() {
        return new GenericTypeInfo<>(Event.class); // old
        return TypeInformation.of(Event.class); // new
    }
}

final class FlightTupleLonger extends FlightJob<Object> {
    Object parse(String line) {
        return Tuple2.of(line.split(",")[0], number(line)); // old
        return org.apache.flink.api.java.tuple.Tuple3.of(line.split(",")[0], number(line), 1L); // new
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    TypeInformation<Object> type() {
        return (TypeInformation) Types.TUPLE(Types.STRING, Types.INT); // old
        return (TypeInformation) Types.TUPLE(Types.STRING, Types.INT, Types.LONG); // new
    }
}

/** The class of the records did not change, but that of a state elsewhere. */
final class FlightBesides extends FlightJob<FlightBesides.Event> {
    public static class Event {
        public String key;

        @Override
        public String toString() {
            return key;
        }
    }

    public static class Unrelated {
        public String a;
        public String b; // new
    }

    Event parse(String line) {
        Event event = new Event();
        event.key = line.split(",")[0];
        return event;
    }

    TypeInformation<Event> type() {
        return TypeInformation.of(Event.class);
    }
}
