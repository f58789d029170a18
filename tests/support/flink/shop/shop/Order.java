package shop;

import java.time.LocalDate;

/** An order that has not been sent. */
public class Order {
    public String id;
    public String product;
    public int quantity;
    public long cents;
    public LocalDate placed;
    public Status status;
}
