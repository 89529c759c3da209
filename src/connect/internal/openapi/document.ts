/** Reads OpenAPI documents in JSON or YAML. They may be hostile. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { follow, pathOf } from "../../../support/json/jsonSchema.ts"
import { cut } from "../../../support/text/text.ts"
import { yaml } from "../../../support/text/yaml.ts"
import { OpenApiError } from "../../OpenApiError.ts"

/** A document with a cache of resolved references. */
export interface Document {
  readonly root: JsonObject
  readonly targets: Map<string, JsonObject | undefined>
}

const parse = (text: string): Effect.Effect<unknown> =>
  Result.match(
    Result.try(() => JSON.parse(text) as unknown),
    {
      onSuccess: Effect.succeed,
      // The YAML parser accepts broken JSON, but slowly: the first character tells them apart.
      onFailure: () =>
        /^\s*[{[]/.test(text.slice(0, 1_000))
          ? Effect.undefined
          : Effect.map(yaml, (parser) =>
              Result.getOrElse(
                Result.try((): unknown => parser.parse(text, { schema: "core", uniqueKeys: false })),
                () => undefined
              )
            )
    }
  )

/** Reads a document from its text or its value. `name` appears in errors. */
export const readDocument = Effect.fnUntraced(function* (source: unknown, name: string) {
  const fail = (problem: string) => new OpenApiError({ document: name, problem })
  const value = typeof source === "string" ? yield* parse(source) : source
  if (!isObject(value)) {
    return yield* fail("it is neither JSON nor YAML of an object; give the document itself, or use fromUrl or fromFile")
  }
  // YAML reads `openapi: 3.1` as a number.
  const rawVersion = value["openapi"] ?? value["swagger"]
  const version = typeof rawVersion === "number" ? rawVersion.toFixed(1) : rawVersion
  if (typeof version !== "string" || !/^3\.[01](?:\.|$)/.test(version)) {
    const versionText = typeof version === "string" ? JSON.stringify(cut(version, 40)) : "null"
    return yield* fail(`it is of version ${versionText}; tools are made of OpenAPI 3.0 and 3.1`)
  }
  if (!isObject(value["paths"])) return yield* fail("it has no paths, so there is nothing to call")
  return { root: value, targets: new Map() } satisfies Document
})

/** Maximum length of a chain of references. A longer chain is a circle, or hostile. */
const stepLimit = 64

/** Follows a chain of references to its end. */
export const lookUp = ({ root, targets }: Document, ref: string): JsonObject | undefined => {
  if (targets.has(ref)) return targets.get(ref)
  let at: string | undefined = ref
  let target: JsonObject | undefined
  for (let step = 0; at !== undefined && step < stepLimit; step++) {
    const path = pathOf(at)
    target = path === undefined ? undefined : follow(root, path)
    const next: Json | undefined = target?.["$ref"]
    at = typeof next === "string" ? next : undefined
  }
  const whole = at === undefined ? target : undefined
  targets.set(ref, whole)
  return whole
}

/** Returns an object, or follows its reference. */
export const resolve = (document: Document, node: Json | undefined): JsonObject | undefined => {
  if (!isObject(node)) return undefined
  const { $ref } = node
  return typeof $ref === "string" ? lookUp(document, $ref) : node
}

export const textAt = (object: JsonObject, key: string): string | undefined => {
  const value = Object.hasOwn(object, key) ? object[key] : undefined
  return typeof value === "string" ? value : undefined
}

export const listAt = (object: JsonObject | undefined, key: string): ReadonlyArray<Json> => {
  const value = object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined
  return Array.isArray(value) ? value : []
}

export const objectAt = (object: JsonObject | undefined, key: string): JsonObject | undefined => {
  const value = object !== undefined && Object.hasOwn(object, key) ? object[key] : undefined
  return isObject(value) ? value : undefined
}
