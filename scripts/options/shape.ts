/**
 * Writes a type as the text of a shape, which `src/support/options.ts` reads at run time.
 */
import {
  type Checker,
  ObjectFlags,
  SignatureKind,
  type Symbol,
  SymbolFlags,
  type Type,
  TypeFlags
} from "typescript/unstable/sync"

/** An option of a constructor, or a property of one of its parts. */
export interface Property {
  readonly name: string
  readonly isOptional: boolean
  readonly types: ReadonlyArray<Type>
  /** Its declarations, in each alternative. */
  readonly symbols: ReadonlyArray<Symbol>
}

/** The parts of an object type. */
export type Alternative = ReadonlyArray<Type>

/** Interfaces of this package that users write as literals. Other objects come from constructors: not looked into. */
const isWritten = (name: string) =>
  /(?:Options|Rule|Limits|Settings|Annotations|Prices|Rate|Vertex|Credentials|Amount|HarnessProfile|Manifest)$/.test(
    name
  )

/** Values of constructors without a key of their own, and a property that they have. */
const marks: { readonly [name: string]: string } = { Tool: "prepare", AnyTool: "prepare", Connection: "credential" }

/** Reads the types of one program. */
export const makeReader = (checker: Checker, isOwn: (symbol: Symbol | undefined) => boolean) => {
  const nameOf = (type: Type) => type.getAliasSymbol()?.name ?? type.getSymbol()?.name ?? ""

  /** A type parameter stands for what it extends. */
  const resolved = (type: Type): Type =>
    type.flags & TypeFlags.Instantiable ? (checker.getBaseConstraintOfType(type) ?? type) : type

  /** Types that are only for the messages of the compiler. */
  const isForCompiler = (type: Type) => ["NoJsonSchema", "NoStandard", "Only"].includes(nameOf(type))

  const membersOf = (type: Type, seen: ReadonlyArray<number> = []): ReadonlyArray<Type> => {
    const own = resolved(type)
    // `keyof Models & string`, and strings with a brand, are strings.
    const primitive = own.isIntersectionType()
      ? own.getTypes().find(({ flags }) => flags & TypeFlags.Primitive)
      : undefined
    if (primitive !== undefined) return [primitive]
    const parts = own.isIntersectionType() ? own.getTypes().filter((part) => !isForCompiler(part)) : []
    if (parts[0] !== undefined && parts.length === 1) return membersOf(parts[0], seen)
    if (!own.isUnionType() || seen.includes(own.id)) return [own]
    return own
      .getTypes()
      .filter((member) => !isForCompiler(member))
      .flatMap((member) => membersOf(member, [...seen, own.id]))
  }

  /** The alternatives of a type, each with its parts: a union has several, an intersection has parts. */
  const alternativesOf = (type: Type): ReadonlyArray<Alternative> => {
    const own = resolved(type)
    if (own.isUnionType()) return own.getTypes().flatMap(alternativesOf)
    if (!own.isIntersectionType()) return [[own]]
    return own
      .getTypes()
      .filter((part) => !isForCompiler(part))
      .map(alternativesOf)
      .reduce<ReadonlyArray<Alternative>>(
        (whole, part) => whole.flatMap((left) => part.map((right) => [...left, ...right])),
        [[]]
      )
  }

  /** The properties of an alternative: its first part that has a name decides. */
  const propertiesOf = (parts: Alternative): ReadonlyArray<Symbol> => {
    const seen = new Set<string>()
    return parts
      .flatMap((part) => checker.getPropertiesOfType(part))
      .filter(({ name }) => !seen.has(name) && seen.add(name) !== undefined)
  }

  /** The properties of one or several alternatives. Only those of all alternatives are required. */
  const fieldsOf = (alternatives: ReadonlyArray<Alternative>): ReadonlyArray<Property> => {
    const found = new Map<string, { count: number; isOptional: boolean; types: Array<Type>; symbols: Array<Symbol> }>()
    for (const alternative of alternatives) {
      for (const symbol of propertiesOf(alternative)) {
        const type = checker.getTypeOfSymbol(symbol)
        if (type === undefined) continue
        const entry = found.get(symbol.name) ?? { count: 0, isOptional: false, types: [], symbols: [] }
        entry.count++
        entry.isOptional ||= (symbol.flags & SymbolFlags.Optional) !== 0
        entry.types.push(type)
        entry.symbols.push(symbol)
        found.set(symbol.name, entry)
      }
    }
    return [...found].map(([name, { count, isOptional, symbols, types }]) => ({
      name,
      isOptional: isOptional || count < alternatives.length,
      types,
      symbols
    }))
  }

  /** The key by which a value of a library is known at run time: `~effect/Layer`. */
  const brandOf = (type: Type): string | undefined => {
    const mark = isOwn(type.getAliasSymbol() ?? type.getSymbol()) ? marks[nameOf(type)] : undefined
    if (mark !== undefined) return `~${nameOf(type).replace("AnyTool", "Tool")}:${mark}`
    const brands = checker
      .getPropertiesOfType(type)
      .filter(({ flags, name }) => name.startsWith("~") && (flags & SymbolFlags.Optional) === 0)
      .map(({ name }) => name)
      .filter((name) => !/^~effect\/(?:Hash|Equal|Inspectable)$/.test(name))
    return brands.find((name) => name.endsWith(`/${nameOf(type)}`)) ?? brands[0]
  }

  const isStruct = (type: Type): boolean => {
    if (type.isIntersectionType()) return type.getTypes().every((part) => isStruct(resolved(part)))
    const name = nameOf(type)
    return (
      isOwn(type.getAliasSymbol() ?? type.getSymbol()) &&
      !(type.isObjectType() && type.objectFlags & ObjectFlags.Mapped) &&
      (name === "__type" || isWritten(name)) &&
      checker.getSignaturesOfType(type, SignatureKind.Call).length === 0 &&
      checker.getPropertiesOfType(type).length > 0 &&
      // Values with a tag come from constructors.
      checker.getPropertyOfType(type, "_tag") === undefined
    )
  }

  const isDuration = (types: ReadonlyArray<Type>) =>
    types.flatMap((type) => membersOf(type)).some((type) => type.isStringLiteralType() && type.value === "-Infinity")

  /** The alternatives of a value: primitives, literals, brands and objects. */
  const kindOf = (types: ReadonlyArray<Type>, depth: number): string => {
    const members = types.flatMap((type) => membersOf(type))
    const letters = new Set<string>()
    const literals = new Set<string>()
    const structs: Array<Alternative> = []
    const lists: Array<Type> = []
    const records: Array<Type> = []
    if (isDuration(types)) return "d"
    if (depth > 6) return "*"
    for (const type of members) {
      const { flags } = type
      const alias = type.getAliasSymbol()?.name
      if (flags & (TypeFlags.Undefined | TypeFlags.Never | TypeFlags.Void)) continue
      if (alias === "Json" || flags & TypeFlags.AnyOrUnknown) letters.add("*")
      else if (flags & TypeFlags.Null) letters.add("z")
      else if (type.isStringLiteralType()) literals.add(type.value)
      else if (flags & TypeFlags.StringLike) letters.add("s")
      else if (flags & TypeFlags.Instantiable) letters.add("*")
      else if (flags & (TypeFlags.NumberLike | TypeFlags.BigIntLike)) letters.add("n")
      else if (flags & TypeFlags.BooleanLike) letters.add("b")
      else if (type.isTupleType() || checker.isArrayLikeType(type)) {
        lists.push(...(type.isTypeReference() ? checker.getTypeArguments(type) : []))
        letters.add("a")
      } else {
        const brand = brandOf(type)
        const indexes = checker.getIndexInfosOfType(type)
        const properties = checker.getPropertiesOfType(type)
        const [index] = indexes
        if (brand !== undefined) letters.add(`${brand}~`)
        else if (["Set", "ReadonlySet"].includes(nameOf(type))) letters.add("t")
        else if (nameOf(type) === "Iterable") letters.add("a").add("o")
        else if (["Map", "ReadonlyMap"].includes(nameOf(type))) letters.add("m")
        else if (checker.getSignaturesOfType(type, SignatureKind.Call).length > 0) letters.add("f")
        else if (index !== undefined && properties.length === 0) records.push(index.valueType)
        else if (isStruct(type)) structs.push(...alternativesOf(type))
        else letters.add("o")
      }
    }
    const item = lists.length === 0 ? "*" : kindOf(lists, depth + 1)
    if (letters.has("a") && !/[*o]$|^o/.test(item)) {
      letters.delete("a")
      letters.add(`[${item}]`)
    }
    const value = records.length === 0 ? "*" : kindOf(records, depth + 1)
    // Records of JSON may be long.
    if (records.length > 0) letters.add(/[*<]|^a.*o/.test(value) ? "o" : `<${value}>`)
    if (letters.has("*")) return "*"
    if (letters.has("o")) for (const letter of letters) if (letter.startsWith("<")) letters.delete(letter)
    if (structs.length > 0 && !letters.has("o")) letters.add(`{${shapeOf(structs, depth + 1)}}`)
    return [...[...literals].sort().map((value) => `'${value}'`), ...[...letters].sort()].join("")
  }

  /** The text of the shape of options. */
  const shapeOf = (alternatives: ReadonlyArray<Alternative>, depth = 0): string =>
    fieldsOf(alternatives)
      .filter(({ name }) => !name.startsWith("~") && !name.startsWith("__@"))
      .map(({ isOptional, name, types }) => `${name}${isOptional ? "?" : ""}:${kindOf(types, depth)}`)
      .join(";")

  return { nameOf, membersOf, alternativesOf, fieldsOf, isStruct, shapeOf }
}
