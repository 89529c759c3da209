// Only for D: what importing the Effect modules costs that a deep agent imports. The run is that of the bare loop.
import { effectModules } from "../effect-modules.mjs"
export { history, make } from "./bare.mjs"

await Promise.all(effectModules("deep/index.js", "backends/index.js").map((specifier) => import(specifier)))
