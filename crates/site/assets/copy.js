// Fills this site's address into examples that lack it, and adds a button that copies them.

const UNKNOWN_ADDRESS = "https://census.example";

for (const note of document.querySelectorAll(".fill-in")) {
  // Not hidden: otherwise the content below would move up while somebody reads it.
  note.textContent = "The commands have the address of this site as you reached it.";
  for (const code of document.querySelectorAll("pre code")) code.textContent = code.textContent.replaceAll(UNKNOWN_ADDRESS, location.origin);
}

for (const example of document.querySelectorAll("pre.copy")) {
  const frame = document.createElement("div");
  frame.className = "copied";
  example.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(example.textContent);
      button.textContent = "Copied";
    } catch {
      // Browsers allow it over HTTPS only.
      button.textContent = "Select and copy by hand";
    }
  });
  frame.append(example, button);
}
