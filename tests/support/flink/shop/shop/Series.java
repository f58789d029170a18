package shop;

/** Numbers of invoices: each subtask counts with its own prefix. */
public class Series {
    public String prefix;
    public long next;
}
