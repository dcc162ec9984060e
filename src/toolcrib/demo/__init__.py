"""Example tools and apps that `toolcrib serve --demo` adds."""
