package shop;

import java.time.Duration;
import java.util.Properties;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** The job of a small shop: customers fill baskets, order and pay. It reads three topics of Kafka and writes invoices. */
public final class Shop {
    private static final OutputTag<Event> CLICKS = new OutputTag<>("clicks", TypeInformation.of(Event.class));
    private static final OutputTag<Event> PRICES = new OutputTag<>("prices", TypeInformation.of(Event.class));

    private Shop() {}

    /** Define the job. The sink of the dashboard gets texts, and the watermark of all operators with timers. */
    public static void define(StreamExecutionEnvironment env, String servers, DeliveryGuarantee guarantee, Sink<String> dashboard) {
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers).setTopics("orders", "clicks", "prices").setGroupId("shop")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema()).build();
        SingleOutputStreamOperator<Event> orders = env
                .fromSource(source, WatermarkStrategy.forMonotonousTimestamps(), "events").uid("events")
                .process(new Parse()).uid("parse").name("parse");
        KeyedStream<Event, String> clicks = orders.getSideOutput(CLICKS).keyBy(event -> event.name);
        KeyedStream<Event, String> ordersOfCustomer = orders.keyBy(event -> event.name);

        SingleOutputStreamOperator<Payment> payments =
                ordersOfCustomer.process(new Orders()).uid("orders").name("orders");
        SingleOutputStreamOperator<String> baskets = clicks
                .connect(orders.getSideOutput(PRICES).broadcast(Baskets.PRICES))
                .process(new Baskets()).uid("baskets").name("baskets");
        SingleOutputStreamOperator<String> sessions = clicks
                .window(EventTimeSessionWindows.withGap(Duration.ofMinutes(30)))
                .aggregate(new Visits(), new Show<>()).uid("sessions").name("sessions");
        SingleOutputStreamOperator<String> sales = payments.keyBy(payment -> payment.product)
                .window(TumblingEventTimeWindows.of(Duration.ofDays(1)))
                .aggregate(new Sales(), new Show<>()).uid("daily-sales").name("daily-sales");
        SingleOutputStreamOperator<String> reminders =
                ordersOfCustomer.process(new Reminders()).uid("reminders").name("reminders");
        baskets.union(sessions, sales, reminders).sinkTo(dashboard).uid("dashboard").name("dashboard");
        payments.map(new Invoicing()).returns(Types.STRING).uid("invoicing").name("invoicing")
                .sinkTo(invoices(servers, guarantee)).uid("invoices").name("invoices");
    }

    private static KafkaSink<String> invoices(String servers, DeliveryGuarantee guarantee) {
        Properties properties = new Properties();
        properties.setProperty("transaction.timeout.ms", "3600000");
        // The broker answers late on a busy machine.
        properties.setProperty("max.block.ms", "600000");
        properties.setProperty("delivery.timeout.ms", "600000");
        return KafkaSink.<String>builder()
                .setBootstrapServers(servers).setKafkaProducerConfig(properties)
                .setDeliveryGuarantee(guarantee).setTransactionalIdPrefix("shop-invoices")
                .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder()
                        .setTopic("invoices").setValueSerializationSchema(new SimpleStringSchema()).build())
                .build();
    }

    /** Orders and payments go on, clicks and prices to the side. The last record of each partition only has a time. */
    static final class Parse extends ProcessFunction<String, Event> {
        @Override
        public void processElement(String line, Context context, Collector<Event> out) {
            Event event = Event.of(line);
            switch (event.kind) {
                case "view": case "put": case "drop": case "coupon":
                    context.output(CLICKS, event);
                    break;
                case "price":
                    context.output(PRICES, event);
                    break;
                case "end":
                    break;
                default:
                    out.collect(event);
            }
        }
    }

    static final class Visits implements AggregateFunction<Event, Visit, Visit> {
        @Override
        public Visit createAccumulator() {
            return new Visit();
        }

        @Override
        public Visit add(Event click, Visit visit) {
            visit.clicks++;
            if (!click.kind.equals("coupon")) {
                visit.first = visit.first == null ? click.rest[0] : visit.first;
                visit.last = click.rest[0];
            }
            return visit;
        }

        @Override
        public Visit getResult(Visit visit) {
            return visit;
        }

        @Override
        public Visit merge(Visit a, Visit b) {
            if (b.clicks > 0) {
                a.clicks += b.clicks;
                a.first = a.first == null ? b.first : a.first;
                a.last = b.last == null ? a.last : b.last;
            }
            return a;
        }
    }

    static final class Sales implements AggregateFunction<Payment, Sale, Sale> {
        @Override
        public Sale createAccumulator() {
            return new Sale();
        }

        @Override
        public Sale add(Payment payment, Sale sale) {
            sale.units += payment.quantity;
            sale.cents += payment.cents;
            return sale;
        }

        @Override
        public Sale getResult(Sale sale) {
            return sale;
        }

        @Override
        public Sale merge(Sale a, Sale b) {
            a.units += b.units;
            a.cents += b.cents;
            return a;
        }
    }

    static final class Show<T> extends ProcessWindowFunction<T, String, String, TimeWindow> {
        @Override
        public void process(String key, Context context, Iterable<T> results, Collector<String> out) {
            out.collect(key + " until " + context.window().getEnd());
        }
    }
}
