/** The network rules for agents of the program: public addresses only, a few megabytes per answer. */
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Network from "../../../../net/Network.ts"
import * as NodeNetwork from "../../../../net/NodeNetwork.ts"
import * as NodeWebReader from "../../../../web/NodeWebReader.ts"
import * as WebSearch from "../../../../web/WebSearch.ts"
import type { Search } from "../../commands/search.ts"

const { brave, duckDuckGo, exa, serper, tavily } = WebSearch
const byKey = { brave, exa, serper, tavily }

const searching = (search: Search) =>
  search.name === "duckduckgo" ? duckDuckGo() : byKey[search.name]({ apiKey: Redacted.make(search.key) })

export const layer = (search: Search, rules: Network.Rules) =>
  Layer.merge(Layer.provideMerge(searching(search), NodeNetwork.layer(rules)), NodeWebReader.layer())
