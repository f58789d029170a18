package shop;

import java.util.Arrays;

/** A record of Kafka: what happened, to whom, and the rest of the line. */
public class Event {
    public String kind;
    /** A customer, or the product of a price. */
    public String name;
    public String[] rest;

    static Event of(String line) {
        String[] words = line.split(" ");
        Event event = new Event();
        event.kind = words[0];
        event.name = words[1];
        event.rest = Arrays.copyOfRange(words, 2, words.length);
        return event;
    }
}
