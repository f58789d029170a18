package shop;

/** What the customers have paid for a product in a day. */
public class Sale {
    public int units;
    public long cents;
}
