/** What the protocol's conformance suite starts as a client: it asks the process of the test for one, and ends as that does. */
const [asked, url] = process.argv.slice(2)
const { MCP_CONFORMANCE_CONTEXT: context = "{}", MCP_CONFORMANCE_SCENARIO: scenario = "" } = process.env
const response = await fetch(asked, { method: "POST", body: JSON.stringify({ url, scenario, context }) })
const text = await response.text()
if (!response.ok) console.error(text)
process.exit(response.ok ? 0 : 1)
