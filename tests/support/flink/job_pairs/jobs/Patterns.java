package jobs;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.util.Collector;

/** Shows the values of a match in the order of their steps. */
final class Matches extends PatternProcessFunction<String, String> {
    @Override
    public void processMatch(Map<String, List<String>> match, Context context, Collector<String> out) {
        out.collect(String.valueOf(match.values()));
    }
}

abstract class PatternJob extends Job {
    static SimpleCondition<String> has(String letter) {
        return SimpleCondition.of(line -> line.split(",")[1].equals(letter));
    }

    abstract Pattern<String, ?> pattern();

    @Override
    public DataStream<?> build(DataStream<String> lines) {
        return CEP.pattern(keyed(lines), pattern()).process(new Matches(), Types.STRING).uid("matches");
    }
}

final class PatternSame extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b")).followedBy("third").where(has("c"));
    }
}

final class PatternRenamedFirst extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")) // old
        return Pattern.<String>begin("beginning").where(has("a")) // new
                .followedBy("second").where(has("b")).followedBy("third").where(has("c"));
    }
}

final class PatternRenamedMiddle extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a"))
                .followedBy("second").where(has("b")) // old
                .followedBy("middle").where(has("b")) // new
                .followedBy("third").where(has("c"));
    }
}

final class PatternRenamedLast extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("third").where(has("c")); // old
                .followedBy("finale").where(has("c")); // new
    }
}

final class PatternAddedLast extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b")).followedBy("third").where(has("c"))
                .followedBy("fourth").where(has("d")) // new
                ;
    }
}

final class PatternAddedMiddle extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("added").where(has("x")) // new
                .followedBy("third").where(has("c"));
    }
}

final class PatternAddedFirst extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern
                .<String>begin("first").where(has("a")) // old
                .<String>begin("zeroth").where(has("z")).followedBy("first").where(has("a")) // new
                .followedBy("second").where(has("b")).followedBy("third").where(has("c"));
    }
}

final class PatternRemovedFirst extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern
                .<String>begin("first").where(has("a")).followedBy("second").where(has("b")) // old
                .<String>begin("second").where(has("b")) // new
                .followedBy("third").where(has("c"));
    }
}

final class PatternRemovedMiddle extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a"))
                .followedBy("second").where(has("b")) // old
                .followedBy("third").where(has("c"));
    }
}

final class PatternRemovedLast extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("third").where(has("c")) // old
                ;
    }
}

final class PatternReordered extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a"))
                .followedBy("second").where(has("b")).followedBy("third").where(has("c")); // old
                .followedBy("third").where(has("c")).followedBy("second").where(has("b")); // new
    }
}

/** The name of a step that is gone is another text of the job. */
final class PatternNameElsewhere extends PatternJob {
    static final String LABEL = "third";

    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("third").where(has("c")); // old
                .followedBy("finale").where(has("c")); // new
    }

    @Override
    public DataStream<?> build(DataStream<String> lines) {
        System.out.println("third".concat(lines.toString()).length());
        return super.build(lines);
    }
}

final class PatternCondition extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("third").where(has("c")); // old
                .followedBy("third").where(has("d")); // new
    }
}

final class PatternStrict extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b"))
                .followedBy("third").where(has("c")); // old
                .next("third").where(has("c")); // new
    }
}

final class PatternOptional extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a"))
                .followedBy("second").where(has("b")) // old
                .followedBy("second").where(has("b")).optional() // new
                .followedBy("third").where(has("c"));
    }
}

final class PatternTimes extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a"))
                .followedBy("second").where(has("b")).times(3) // old
                .followedBy("second").where(has("b")).times(2) // new
                .followedBy("third").where(has("c"));
    }
}

final class PatternWithin extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern.<String>begin("first").where(has("a")).followedBy("second").where(has("b")).followedBy("third").where(has("c"))
                .within(Duration.ofSeconds(2)) // new
                ;
    }
}

final class PatternSkip extends PatternJob {
    Pattern<String, ?> pattern() {
        return Pattern
                .<String>begin("first") // old
                .<String>begin("first", AfterMatchSkipStrategy.skipPastLastEvent()) // new
                .where(has("a")).followedBy("second").where(has("b")).followedBy("third").where(has("c"));
    }
}
