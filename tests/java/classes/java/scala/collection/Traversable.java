package scala.collection;

/** In place of the trait of Scala's library, which the tests need only by its name. */
public interface Traversable {}
