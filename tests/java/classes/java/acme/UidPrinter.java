package acme;

import java.io.ObjectStreamClass;

/** Prints the {@code serialVersionUID} of the classes named by the arguments, one a line. */
public final class UidPrinter {
    private UidPrinter() {}

    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Class<?> cls = Class.forName(name, false, UidPrinter.class.getClassLoader());
            System.out.println(name + " " + ObjectStreamClass.lookupAny(cls).getSerialVersionUID());
        }
    }
}
