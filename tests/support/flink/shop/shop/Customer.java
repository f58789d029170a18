package shop;

import java.time.LocalDate;

/** What the shop knows of a customer, whose name is the key. */
public class Customer {
    public String email;
    public String city;
    public LocalDate since;
}
