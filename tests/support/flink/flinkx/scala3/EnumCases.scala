package harness

import org.apache.flinkx.api.serializers._

enum Planet:
  case Earth, Mars

enum Tree:
  case Leaf(item: Item)
  case Node(left: Int, right: Int)
  case Nothing

/** Enums of Scala 3. */
object EnumCases extends Cases:
  Render.more = {
    case planet: Planet => Render.name(planet)
    case tree: Tree =>
      val cases = Seq("Leaf" -> Render.only[Tree.Leaf](tree), "Node" -> Render.only[Tree.Node](tree))
      Render.struct(("kind" -> Render.name(tree)) +: cases: _*)
  }

  private val trees = Seq(Tree.Leaf(AllCases.item(3)), Tree.Node(1, 2), Tree.Nothing)

  override def cases: Seq[Case[?]] = Seq(
    Case[Planet]("enum")(n => Planet.fromOrdinal(n % 2)),
    Case[Tree]("enum_of_cases")(n => trees(n % 3)),
    Case[List[Planet]]("enums")(n => List.fill(n % 3)(Planet.Mars))
  )
