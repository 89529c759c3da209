/**
 * The order of what a model said in one turn.
 *
 * A message of ours holds content and calls apart, and has no place for what the provider ran itself (a web search and
 * its result). Some providers want all of it back in the order in which it came: where that order can't be told from
 * the message, it is kept beside it.
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { JsonObject } from "../../../core/Json.ts"

const Place = Schema.Union([Schema.Literals(["content", "call"]), JsonObject])

/** `content` and `call` stand for the next block and the next call; an object is a part of the provider's own. */
export type Place = typeof Place.Type

/** The order of a turn; `undefined` where it is content first and then calls. */
export const layoutOf = (places: ReadonlyArray<Place>): ReadonlyArray<Place> | undefined => {
  const plain = places.every(
    (place, index) => typeof place === "string" && !(place === "content" && places[index - 1] === "call")
  )
  return plain ? undefined : places
}

const decodeData = Schema.decodeUnknownOption(Schema.Struct({ layout: Schema.Array(Place) }))

/**
 * Puts content and calls in the order of the layout in a message's data; `revive` makes again what the provider ran.
 * Both are used up to the last one, whatever the layout says: a middleware may have changed the message since.
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
