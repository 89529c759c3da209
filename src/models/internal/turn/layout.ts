/**
 * The order of content, calls and server tools in one turn.
 *
 * A message stores content and calls apart, without a provider's own tools (a web search and its result). Some
 * providers need the original order back, so the data of the message records an unusual one.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../../core/Json.ts"

const Place = Schema.Union([Schema.Literals(["content", "call"]), JsonObject])

/** `content` and `call` stand for the next block and the next call; an object is a part of the provider's own. */
export type Place = typeof Place.Type

/** Describes the order of a turn. `undefined` for content followed by calls. */
export const layoutOf = (places: ReadonlyArray<Place>): ReadonlyArray<Place> | undefined => {
  const plain = places.every(
    (place, index) => typeof place === "string" && !(place === "content" && places[index - 1] === "call")
  )
  return plain ? undefined : places
}

const decodeData = Schema.decodeUnknownOption(Schema.Struct({ layout: Schema.Array(Place) }))

/**
 * Restores the order of content and calls from a message's data. `revive` rebuilds the provider's own parts. Every
 * content block and call is used, even beyond the layout, because a middleware may have changed the message.
 */
export const arrange = <Content, Call, Own>(
  data: JsonObject | undefined,
  content: ReadonlyArray<Content>,
  calls: ReadonlyArray<Call>,
  revive: (place: JsonObject) => ReadonlyArray<Own>
): ReadonlyArray<Content | Call | Own> => {
  const layout = data?.["layout"] === undefined ? Option.none() : decodeData(data)
  if (Option.isNone(layout)) return [...content, ...calls]
  const restOfContent = [...content]
  const restOfCalls = [...calls]
  const arranged: Array<Content | Call | Own> = []
  for (const place of layout.value.layout) {
    if (place === "content") arranged.push(...restOfContent.splice(0, 1))
    else if (place === "call") arranged.push(...restOfCalls.splice(0, 1))
    else arranged.push(...revive(place))
  }
  return [...arranged, ...restOfContent, ...restOfCalls]
}
