/**
 * `Schema.Number` as JSON has it. Effect writes the numbers that JSON lacks as words ("NaN", "Infinity"), which a model
 * would be told of, and could answer with; and with the words go the description and the bounds of the number.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"

const finite = Schema.isFinite()

type Recur = (ast: SchemaAST.AST) => SchemaAST.AST

/** The same node but for some fields, as Effect copies its own. */
const copy = <A extends SchemaAST.AST>(ast: A, changes: Partial<A>): A =>
  Object.assign(Object.create(Object.getPrototypeOf(ast)), ast, changes)

const mapChildren = (ast: SchemaAST.AST, recur: Recur, encoding: SchemaAST.Encoding | undefined): SchemaAST.AST => {
  if (SchemaAST.isNumber(ast))
    return copy(ast, encoding === undefined ? { checks: [finite, ...(ast.checks ?? [])] } : { encoding })
  if (SchemaAST.isArrays(ast))
    return copy(ast, { elements: ast.elements.map(recur), rest: ast.rest.map(recur), encoding })
  if (SchemaAST.isObjects(ast))
    return copy(ast, {
      propertySignatures: ast.propertySignatures.map(
        ({ name, type }) => new SchemaAST.PropertySignature(name, recur(type))
      ),
      indexSignatures: ast.indexSignatures.map(
        ({ parameter, type }) => new SchemaAST.IndexSignature(parameter, recur(type))
      ),
      encoding
    })
  if (SchemaAST.isUnion(ast)) return copy(ast, { types: ast.types.map(recur), encoding })
  if (SchemaAST.isSuspend(ast)) return copy(ast, { thunk: () => recur(ast.thunk()), encoding })
  if (SchemaAST.isDeclaration(ast)) return copy(ast, { typeParameters: ast.typeParameters.map(recur), encoding })
  return ast
}

/** The schema with finite numbers only, wherever it is a number that is written as one. */
export const withFiniteNumbers = <A>(
  schema: Schema.ConstraintCodec<A, unknown>
): Schema.ConstraintCodec<A, unknown> => {
  const copies = new WeakMap<SchemaAST.AST, SchemaAST.AST>()
  const recur = (ast: SchemaAST.AST): SchemaAST.AST => {
    const before = copies.get(ast)
    if (before !== undefined) return before
    const links = ast.encoding?.map((link) => new SchemaAST.Link(recur(link.to), link.transformation))
    const [first, ...rest] = links ?? []
    const result = mapChildren(ast, recur, first === undefined ? undefined : [first, ...rest])
    copies.set(ast, result)
    return result
  }
  return Schema.make(recur(schema.ast))
}
