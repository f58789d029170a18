package shop;

/** A paid order. */
public class Payment {
    public String customer;
    public String order;
    public String product;
    public int quantity;
    public long cents;
}
