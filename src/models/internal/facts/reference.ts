/** The catalogue that layers of models read. Apart from the readers of files and addresses, which few programs need. */
import * as Context from "effect/Context"
import { type Catalogue, shipped } from "./catalogue.ts"

/** The catalogue that layers of models read. Default: the one inside the package. */
export const ModelCatalogue = Context.Reference<Catalogue>("effect-deepagents/models/ModelCatalogue", {
  defaultValue: () => shipped
})
