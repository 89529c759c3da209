/**
 * `Schema.Number` as JSON has it. Effect writes the numbers that JSON lacks as words ("NaN", "Infinity"), which a model
 * would be told of, and could answer with; and with the words go the description and the bounds of the number.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"

const finite = Schema.isFinite()

type Recur = (ast: SchemaAST.AST) => SchemaAST.AST

const within = (ast: SchemaAST.AST, recur: Recur, encoding: SchemaAST.Encoding | undefined): SchemaAST.AST => {
  const { annotations, checks, context } = ast
  if (SchemaAST.isNumber(ast))
    return encoding === undefined
      ? new SchemaAST.Number(annotations, [finite, ...(checks ?? [])], encoding, context)
      : new SchemaAST.Number(annotations, checks, encoding, context)
  if (SchemaAST.isArrays(ast))
    return new SchemaAST.Arrays(
      ast.isMutable,
      ast.elements.map(recur),
      ast.rest.map(recur),
      annotations,
      checks,
      encoding,
      context,
      ast.encodingChecks
    )
  if (SchemaAST.isObjects(ast))
    return new SchemaAST.Objects(
      ast.propertySignatures.map(({ name, type }) => new SchemaAST.PropertySignature(name, recur(type))),
      ast.indexSignatures.map(({ parameter, type }) => new SchemaAST.IndexSignature(parameter, recur(type))),
      annotations,
      checks,
      encoding,
      context,
      ast.encodingChecks
    )
  if (SchemaAST.isUnion(ast))
    return new SchemaAST.Union(
      ast.types.map(recur),
      ast.options,
      annotations,
      checks,
      encoding,
      context,
      ast.encodingChecks
    )
  if (SchemaAST.isSuspend(ast))
    return new SchemaAST.Suspend(() => recur(ast.thunk()), annotations, checks, encoding, context)
  if (SchemaAST.isDeclaration(ast))
    return new SchemaAST.Declaration(
      ast.typeParameters.map(recur),
      ast.run,
      annotations,
      checks,
      encoding,
      context,
      ast.encodingChecks,
      ast.encodingRun
    )
  return ast
}

/** The schema with finite numbers only, wherever it is a number that is written as one. */
export const withFiniteNumbers = <A>(
  schema: Schema.ConstraintCodec<A, unknown>
): Schema.ConstraintCodec<A, unknown> => {
  const known = new WeakMap<SchemaAST.AST, SchemaAST.AST>()
  const recur = (ast: SchemaAST.AST): SchemaAST.AST => {
    const before = known.get(ast)
    if (before !== undefined) return before
    const links = ast.encoding?.map((link) => new SchemaAST.Link(recur(link.to), link.transformation))
    const [first, ...rest] = links ?? []
    const made = within(ast, recur, first === undefined ? undefined : [first, ...rest])
    known.set(ast, made)
    return made
  }
  return Schema.make(recur(schema.ast))
}
