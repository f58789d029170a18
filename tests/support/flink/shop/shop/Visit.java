package shop;

/** The clicks of a session, with its first and last product. */
public class Visit {
    public int clicks;
    public String first;
    public String last;
}
