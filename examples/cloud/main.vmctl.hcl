# A VM that a Terraform module makes. This module makes nothing but a record in its state, and needs no
# provider: replace infra/main.tf with a module for your cloud that has the same outputs.
provider "terraform" "cloud" {
  dir = "infra"
}

vm "dev" {
  provider  = provider.terraform.cloud
  variables = { size = "small" }
  outputs   = { address = "vm_ip" }

  ssh {
    wait = false # nobody listens there
  }
}
