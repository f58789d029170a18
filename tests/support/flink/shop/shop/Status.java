package shop;

/** Whether the customer has paid an order. */
public enum Status { UNPAID, PAID }
